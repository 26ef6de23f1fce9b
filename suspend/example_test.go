package suspend_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// An Event is a primitive in thirty lines: tasks wait for it, and it happens once.
type Event struct {
	guard    suspend.Guard
	happened bool
	waiters  suspend.Queue[struct{}, struct{}]
}

func (e *Event) Wait(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, (*eventSource)(e))
	return err
}

// WaitOp is Wait as a case of a Select.
func (e *Event) WaitOp() suspend.Op[struct{}] { return suspend.OpOf[struct{}]((*eventSource)(e)) }

func (e *Event) Happen() {
	e.guard.Lock()
	defer e.guard.Unlock()
	e.happened = true
	e.waiters.ResumeAll(struct{}{}, nil)
}

// An eventSource implements both Wait and WaitOp: a guard, a look at the state, and a queue.
type eventSource Event

func (e *eventSource) Guard() *suspend.Guard               { return &e.guard }
func (e *eventSource) Try() (v struct{}, ok bool, _ error) { return v, e.happened, nil }
func (e *eventSource) Enqueue(r suspend.Resumer[struct{}]) { e.waiters.Push(r, struct{}{}) }
func (e *eventSource) Remove(r suspend.Resumer[struct{}])  { e.waiters.Remove(r) }

func ExampleWait() {
	var e Event
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(e.Happen)
		fmt.Println(e.Wait(ctx)) // suspends only this task
		happened := suspend.CaseOf(e.WaitOp())
		won, err := suspend.Select(ctx, happened, suspend.CaseOf(suspend.After(time.Hour)))
		fmt.Println(won == happened, err)
		return nil
	})
	// Output:
	// <nil>
	// true <nil>
}

func ExampleSuspend() {
	// Suspend turns a callback into a return value. Here the callback comes from a timer.
	v, err := suspend.Suspend(context.Background(), func(r suspend.Resumer[string]) (string, bool) {
		time.AfterFunc(time.Millisecond, func() { r.Resume("called back", nil) })
		return "", false
	})
	fmt.Println(v, err)
	// Output: called back <nil>
}

func ExampleSelect() {
	ctx := context.Background()
	words, quit := chanx.New[string](0), promise.New[struct{}]()
	go func() {
		_ = words.Send(ctx, "hello")
		_ = words.Send(ctx, "world")
		quit.Fill(struct{}{})
	}()
	word, end := suspend.CaseOf(words.RecvOp()), suspend.CaseOf(quit.AwaitOp())
	for {
		won, err := suspend.Select(ctx, word, end)
		switch won {
		case word:
			fmt.Println(word.Value())
			continue
		case end:
			fmt.Println("quit")
		case nil:
			fmt.Println(err)
		}
		break
	}
	// Output:
	// hello
	// world
	// quit
}

func ExampleSelectOrdered() {
	a, b := promise.New[int](), promise.New[int]()
	a.Fill(1)
	b.Fill(2)
	urgent, other := suspend.CaseOf(b.AwaitOp()), suspend.CaseOf(a.AwaitOp())
	won, _ := suspend.SelectOrdered(context.Background(), urgent, other) // both channels are ready
	fmt.Println(won == urgent)
	// Output: true
}

func ExampleTrySelect() {
	var m mutex.Mutex
	m.Lock()
	won, err := suspend.TrySelect(context.Background(), suspend.CaseOf(m.LockOp()))
	fmt.Println(won, err)
	// Output: <nil> <nil>
}

func ExampleAfter() {
	var m mutex.Mutex
	m.Lock()
	lock, timeout := suspend.CaseOf(m.LockOp()), suspend.CaseOf(suspend.After(time.Millisecond))
	won, _ := suspend.Select(context.Background(), lock, timeout)
	fmt.Println(won == timeout)
	// Output: true
}

func ExampleDo() {
	p := promise.New[int]()
	p.Fill(6)
	double := suspend.Map(p.AwaitOp(), func(v int, err error) (string, error) { return fmt.Sprint(2 * v), err })
	fmt.Println(suspend.Do(context.Background(), double))
	// Output: 12 <nil>
}

func ExampleChoose() {
	slow, quick := promise.New[string](), promise.New[string]()
	quick.Fill("quick")
	fmt.Println(suspend.Do(context.Background(), suspend.Choose(slow.AwaitOp(), quick.AwaitOp())))
	// Output: quick <nil>
}

func ExampleThen() {
	p := promise.New[int]()
	s := fifo.New(fifo.Options{}) // an Executor, such as the main thread of a GUI
	_ = s.Run(context.Background(), func(ctx context.Context) error {
		suspend.Then(ctx, p.AwaitOp(), s, func(v int, err error) { fmt.Println(v, err) })
		p.Fill(42) // no task waits for p
		return nil
	})
	// Output: 42 <nil>
}

func ExampleBlocking() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		others := make(chan struct{})
		_ = suspend.Here().Go(func() { close(others) })
		err := suspend.Blocking(ctx, func() { <-others }) // blocks natively
		fmt.Println(err)
		return nil
	})
	// Output: <nil>
}

func ExampleBlockingValue() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		host, err := suspend.BlockingValue(ctx, os.Hostname) // any function that may block
		fmt.Println(host != "", err)
		return nil
	})
	// Output: true <nil>
}

func ExamplePull2() {
	ch := chanx.New[int](0)
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			_ = ch.Send(ctx, 1)
			_ = ch.Send(ctx, 2)
			_ = ch.Close()
		})
		next, stop := suspend.Pull2(ch.All(ctx)) // the body waits in this task
		defer stop()
		for v, err, ok := next(); ok; v, err, ok = next() {
			fmt.Println(v, err)
		}
		return nil
	})
	// Output:
	// 1 <nil>
	// 2 <nil>
}

func ExampleLazily() {
	ctx, stop := context.WithCancel(context.Background())
	var m mvar.MVar[int]
	ended := make(chan error)
	go func() {
		_, err := m.Take(suspend.Lazily(ctx))
		ended <- err
	}()
	stop()
	// A lazily cancelled Take may stay in the queue. The next Put finds it cancelled, and its value stays in m.
	_ = m.Put(context.Background(), 1)
	fmt.Println(<-ended)
	fmt.Println(m.TryTake())
	// Output:
	// context canceled
	// 1 true
}
