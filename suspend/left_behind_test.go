package suspend_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A bench is a Source whose waiter is in a queue, with the payload 7, but may also be resumed by its Resumer.
type bench struct {
	guard suspend.Guard
	queue suspend.Queue[int, int]
	r     atomic.Pointer[suspend.Resumer[int]]
}

func (b *bench) Guard() *suspend.Guard          { return &b.guard }
func (b *bench) Try() (v int, ok bool, _ error) { return 0, false, nil }
func (b *bench) Remove(r suspend.Resumer[int])  { b.queue.Remove(r) }
func (b *bench) Enqueue(r suspend.Resumer[int]) { b.queue.Push(r, 7); b.r.Store(&r) }
func (b *bench) await(ctx context.Context) int  { v, _ := suspend.WaitLazily[int](ctx, b); return v }
func (b *bench) do(ctx context.Context) (v int) {
	v, _ = suspend.Do(ctx, suspend.OpOf[int](b))
	return v
}

// The Resumer resumes the waiter first. Then its queue meets the node, while the task already waits in another queue.
func TestQueueMeetsANodeThatIsLeftBehind(t *testing.T) {
	ctx, stop := cancel.New(bg)
	defer stop(nil)
	for name, wait := range map[string]func(*bench) int{
		"select": func(b *bench) int { return b.do(ctx) },
		"lazily": func(b *bench) int { return b.await(suspend.Lazily(ctx)) },
		"wait":   func(b *bench) int { return b.await(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			err := fifo.Run(bg, func(context.Context) error {
				var both [2]bench
				over := make(chan struct{})
				var ended atomic.Bool
				go func() {
					defer close(over)
					for i := 0; !ended.Load(); i++ {
						b := &both[i%2]
						r := b.r.Swap(nil)
						if r == nil {
							runtime.Gosched()
							continue
						}
						b.guard.Lock()
						r.Resume(1, nil)
						for b.queue.Len() > 0 {
							if p, _ := b.queue.ResumeHead(2, nil); p != 7 {
								t.Errorf("the queue has %d", p)
							}
						}
						b.guard.Unlock()
					}
				}()
				for i := range 2000 {
					if v := wait(&both[i%2]); v != 1 {
						t.Errorf("%d: %d", i, v)
						break
					}
				}
				ended.Store(true)
				<-over
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// isFreed reports whether the object that make returns is freed when only keep, which make may set, refers to it.
func isFreed[T any](make func() *T) bool {
	var freed atomic.Bool
	func() { runtime.AddCleanup(make(), func(int) { freed.Store(true) }, 0) }()
	for range 100 {
		runtime.GC()
		time.Sleep(time.Millisecond) // cleanups run on another goroutine
		if freed.Load() {
			return true
		}
	}
	return false
}

// The value of a wait is freed, even if its node was left behind or its Resumer is kept.
func TestNothingIsKeptOfWhatWasLeftBehind(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		resumed := func(b *bench) *bench {
			_, _ = suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
				b.queue.Push(r, 1)
				r.Resume(3, nil)
				return 0, false
			})
			return b
		}
		if !isFreed(func() *bench { return resumed(new(bench)) }) {
			t.Error("a task keeps a queue")
		}
		var keep suspend.Resumer[int]
		if !isFreed(func() *bench {
			b := new(bench)
			_ = s.Go(func() { keep = *b.r.Load(); b.queue.Resume(1, nil) })
			b.do(bg)
			return b
		}) {
			t.Error("a Resumer keeps a Source")
		}
		runtime.KeepAlive(keep)
		ctx, stop := cancel.New(bg)
		defer stop(nil)
		if !isFreed(func() *[1000]int {
			d := new([1000]int)
			schedtest.Panics(t, "rude", func() {
				suspend.Then(ctx, suspend.Done(rude{bg2}), s, func(struct{}, error) { t.Error("called", d[0]) })
			})
			return d
		}) {
			t.Error("a context keeps a Then that has panicked")
		}
	})
}

var bg2, _ = context.WithCancel(context.Background())

// When a task has ended, its goroutine is no longer bound, however the task ended.
func TestNoBindingIsLeftBehind(t *testing.T) {
	bound, away := suspend.Bindings()
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	_ = s.Run(bg, func(context.Context) error {
		for range 100 {
			_ = s.Go(func() {})
			_ = s.Go(runtime.Goexit)
			_ = s.Go(func() { panic("oops") })
			_ = s.Go(func() { suspend.Bind(sched.NewThread(), runtime.Goexit) })
		}
		suspend.Yield()
		return nil
	})
	if b, a := suspend.Bindings(); b != bound || a != away {
		t.Errorf("%d are bound, of which %d are away; before, %d and %d", b, a, bound, away)
	}
}

// A counting context counts its registrations.
type counting struct {
	context.Context
	n atomic.Int64
}

func (c *counting) AfterFunc(f func()) func() bool {
	c.n.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool { c.n.Add(-1); return stop() }
}

// A hook that runs after the task may wait with a context, and the stop function of a context may wait, too. Neither leaves a
// registration behind.
func TestNoRegistrationIsLeftBehind(t *testing.T) {
	for _, where := range []string{"hook", "stop"} {
		t.Run(where, func(t *testing.T) {
			inner, cancel := context.WithCancel(bg)
			defer cancel()
			ctx := &counting{Context: inner}
			var m mvar.MVar[int]
			take := func() { _, _ = m.Take(ctx) }
			s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { take() }})
			_ = s.Run(bg, func(context.Context) error {
				_ = s.Go(func() {
					if where == "hook" {
						panic("oops")
					}
					_ = suspend.Sleep(&stops{inner, take}, time.Microsecond)
				})
				for ctx.n.Load() == 0 { // a stop function runs when its task ends
					_ = suspend.Sleep(bg, time.Microsecond)
				}
				_ = m.Put(bg, 1)
				suspend.Yield()
				if n := ctx.n.Load(); where == "hook" && n != 0 {
					t.Errorf("%d registrations are left as the coroutine waits for its next task", n)
				}
				return nil
			})
			if n := ctx.n.Load(); n != 0 {
				t.Errorf("%d registrations are left", n)
			}
		})
	}
}

// A stops context calls f when a registration is withdrawn.
type stops struct {
	context.Context
	f func()
}

func (c *stops) AfterFunc(f func()) func() bool {
	stop := context.AfterFunc(c.Context, f)
	return func() bool { c.f(); return stop() }
}
