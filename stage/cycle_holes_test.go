package stage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
)

// A Do of a batch stage is cancelled while its task is queued. The batch that later takes the task must not end it a second time.
func TestBatchTakesAToldTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stage.NewBatch("c", func(ctx context.Context, in []string, out []int) error { time.Sleep(10 * time.Second); return nil }, stage.Options{Width: 1, Queue: 4, Batch: 1})
		var running atomic.Bool
		a := stage.New("a", func(ctx context.Context, in string) (int, error) {
			running.Store(true)
			defer running.Store(false)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, err := c.Do(short, "gone"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			return 7, nil
		}, stage.Options{Width: 1})
		if err := c.Submit(bg, "k"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		f, err := a.Begin(bg, "h")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Await(bg) // returns the error of the child
		if running.Load() {
			t.Errorf("the task is done after %v, and its handler runs", time.Since(start))
		}
		_ = stage.Shutdown(bg, a, c)
	})
}

// A cycle has a stage a, which sends the input of "h" through a flow, and a stage b, whose handler of "k" waits until let is
// closed, and then for a. The flow, which ends in b, is added later.
type cycle struct {
	let    chan struct{}
	handle func(ctx context.Context, in string) (int, error) // the handler of b
	a, b   *stage.Stage[string, int]
	flow   stage.Flow[string, int]
}

func newCycle(asked string, b stage.Options) *cycle {
	x := &cycle{let: make(chan struct{})}
	x.a = stage.New("a", func(ctx context.Context, in string) (int, error) {
		if in == "h" {
			return x.flow.Do(ctx, asked)
		}
		return 1, nil
	}, stage.Options{Width: 1, Queue: 4})
	x.handle = func(ctx context.Context, in string) (int, error) {
		if in == "k" {
			<-x.let
			return x.a.Do(ctx, "u")
		}
		return 1, nil
	}
	x.b = stage.New("b", func(ctx context.Context, in string) (int, error) { return x.handle(ctx, in) }, b)
	return x
}

// ends fails the test if f is not done after an hour, and closes the stages.
func (x *cycle) ends(t *testing.T, f promise.Future[int], others ...stage.Closer) {
	t.Helper()
	wait, cancel := context.WithTimeout(context.Background(), time.Hour)
	if _, err := f.Await(wait); errors.Is(err, context.DeadlineExceeded) {
		t.Error("hangs: ", x.a.Stats().Handlers, x.b.Stats().Handlers, x.b.Stats().Waiting)
	}
	cancel()
	_ = stage.Shutdown(wait, append(others, x.b, x.a)...)
}

// A handler of a batch waits for room in another stage, which closes a cycle.
func TestBatchThatWaitsForRoom(t *testing.T) {
	for _, batch := range []bool{false, true} {
		for _, piped := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				t.Logf("batch %v, piped %v", batch, piped)
				x := newCycle("t", stage.Options{Width: 1, Queue: stage.NoQueue})
				a, b := x.a, x.b
				var c *stage.Stage[string, string]
				one := func(ctx context.Context, in string) (string, error) {
					if in == "t" && !piped {
						return "", b.Submit(ctx, "child")
					}
					if in == "t" && batch {
						time.Sleep(time.Second)
					}
					return in, nil
				}
				if batch {
					c = stage.NewBatch("c", func(ctx context.Context, in, out []string) (err error) {
						for i := range in {
							out[i], err = one(ctx, in[i])
						}
						return err
					}, stage.Options{Width: 1, Queue: 4, Batch: 2})
				} else {
					c = stage.New("c", one, stage.Options{Width: 1, Queue: 4})
				}
				end := stage.New("end", func(_ context.Context, in string) (int, error) { return 1, nil }, stage.Options{})
				if x.flow = stage.Pipe[string, string, int](c, end); piped {
					x.flow = stage.Pipe[string, string, int](c, b)
				}
				if err := b.Submit(bg, "k"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				f, err := a.Begin(bg, "h")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				close(x.let)
				x.ends(t, f, c, end)
			})
		}
	}
}

// A task without a parent waits for room in the next stage of a pipe, while it holds a slot of its own. This closes a cycle.
func TestRootInAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newCycle("t", stage.Options{Width: 1, Queue: stage.NoQueue})
		c := stage.New("c", func(_ context.Context, in string) (string, error) { return in, nil }, stage.Options{Width: 1, Queue: 4})
		x.flow = stage.Pipe[string, string, int](c, x.b)
		_ = x.b.Submit(bg, "k")
		synctest.Wait()
		_ = x.flow.Submit(bg, "root")
		synctest.Wait()
		f, _ := x.a.Begin(bg, "h")
		synctest.Wait()
		close(x.let)
		x.ends(t, f, c)
	})
}

// A Do waits for one task of a batch. The worker of this batch waits for room with another task.
func TestOtherMemberOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newCycle("m2", stage.Options{Width: 1, Queue: 1})
		c := stage.NewBatch("c", func(ctx context.Context, in, out []string) error {
			if in[0] == "gate" {
				time.Sleep(time.Second)
			}
			copy(out, in)
			return nil
		}, stage.Options{Width: 1, Queue: 4, Batch: 2})
		x.flow = stage.Pipe[string, string, int](c, x.b)
		other := stage.New("other", func(ctx context.Context, in string) (int, error) { return x.flow.Do(ctx, in) }, stage.Options{}) // m1 has a parent
		_ = x.b.Submit(bg, "k")
		synctest.Wait()
		_ = x.flow.Submit(bg, "gate") // and then is in the queue of b
		synctest.Wait()
		_, _ = other.Begin(bg, "m1")
		synctest.Wait()
		f, _ := x.a.Begin(bg, "h")
		time.Sleep(2 * time.Second)
		close(x.let)
		x.ends(t, f, c, other)
	})
}

// A task of a pipe finds the next stage full, and a moment later finds room there. This closes a cycle.
func TestPutCompletesACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := stage.Options{Width: 1, Queue: 1}
		x := newCycle("t", one)
		c := stage.New("c", func(_ context.Context, in string) (string, error) { return in, nil }, one)
		x.handle = func(ctx context.Context, in string) (int, error) {
			switch in {
			case "k1":
				<-x.let
			case "k2":
				return x.a.Do(ctx, "u")
			}
			return 1, nil
		}
		asked := 0
		x.b.Prioritize(func(in string) int {
			if in == "t" {
				if asked++; asked == 2 { // is called between pass and put
					close(x.let)
					time.Sleep(time.Second)
				}
			}
			return 0
		})
		x.flow = stage.Pipe[string, string, int](c, x.b)
		for _, in := range []string{"k1", "k2"} {
			if err := x.b.Submit(bg, in); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		f, err := x.a.Begin(bg, "h")
		if err != nil {
			t.Fatal(err)
		}
		x.ends(t, f, c)
		if asked != 2 {
			t.Error("the test missed its window")
		}
	})
}

// A worker runs a handler with the context of a task that it ran before. The handler must count in its own stage.
func TestStaleGid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, d, e *stage.Stage[string, int]
		var root context.Context
		p := stage.NewPool("p", 1, nil)
		let := make(chan struct{})
		c = stage.New("c", func(ctx context.Context, in string) (int, error) {
			switch in {
			case "root":
				root = ctx
				return 1, d.Submit(ctx, "child")
			case "runs":
				time.Sleep(time.Minute)
			}
			return 1, nil
		}, stage.Options{Pool: p, Width: 1, Queue: 4})
		d = stage.New("d", func(context.Context, string) (int, error) { return e.Do(root, "t") }, stage.Options{Pool: p, Width: 1, Queue: 4})
		e = stage.New("e", func(ctx context.Context, in string) (int, error) {
			if in == "x" {
				<-let
				return c.Do(ctx, "y")
			}
			return 1, nil
		}, stage.Options{Width: 1, Queue: 4})
		x, _ := e.Begin(bg, "x")
		synctest.Wait()
		parent, _ := c.Begin(bg, "root")
		synctest.Wait()
		p.SetWidth(2) // a permit for the next handler, whatever d has done with its own
		_ = c.Submit(bg, "runs")
		synctest.Wait()
		close(let)
		_, err := x.Await(bg)
		if errors.Is(err, stage.ErrCycle) {
			t.Error("a handler of c runs:", err)
		}
		_, _ = parent.Await(bg)
		_ = stage.Shutdown(bg, e, c, d)
	})
}

// A rude context panics in its methods.
type rude struct {
	context.Context
	now *atomic.Bool
}

func (r rude) Err() error {
	if r.now.Load() {
		panic("rude")
	}
	return r.Context.Err()
}

// A handler looks at the context of another handler's wait in a cycle, and the context panics. The first handler is not affected,
// and the cycle ends.
func TestCycleOfARudeContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Bool
		p, q := stage.NewPool("p", 1, nil), stage.NewPool("q", 1, nil)
		var a, b *stage.Stage[string, int]
		var second error
		a = stage.New("a", func(ctx context.Context, in string) (int, error) {
			if in == "first" {
				return b.Do(rude{ctx, &now}, "x")
			}
			return 1, nil
		}, stage.Options{Pool: p, Width: 1, Queue: 4})
		b = stage.New("b", func(ctx context.Context, in string) (int, error) {
			if in == "second" {
				time.Sleep(time.Second)
				now.Store(true)
				defer now.Store(false)
				_, second = a.Do(ctx, "y")
			}
			return 2, nil
		}, stage.Options{Pool: q, Width: 1, Queue: 4, OnPanic: func(v any, _ []byte) { t.Errorf("the other handler panics: %v", v) }})
		if err := b.Submit(bg, "second"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if v, err := a.Do(bg, "first"); v != 2 || err != nil || !errors.Is(second, stage.ErrCycle) {
			t.Errorf("%d, %v; %v", v, err, second)
		}
		_ = stage.Shutdown(bg, a, b)
		require.Zero(t, p.Stats().Running+q.Stats().Running, "permits")
	})
}

// A Do was cancelled, and its context panics when its task enters the next queue. The worker that moves the task is not affected.
func TestCancelledDoOfARudeContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Bool
		p := stage.NewPool("p", 3, nil)
		one := stage.Options{Pool: p, Width: 1, Queue: 4, OnPanic: func(v any, _ []byte) { t.Errorf("the worker panics: %v", v) }}
		first := stage.New("first", func(_ context.Context, in string) (string, error) { time.Sleep(2 * time.Second); return in, nil }, one)
		c := stage.New("c", func(context.Context, string) (int, error) {
			time.Sleep(10 * time.Second)
			now.Store(false)
			return 1, nil
		}, one)
		a := stage.New("a", func(ctx context.Context, in string) (int, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := stage.Pipe(first, stage.Flow[string, int](c)).Do(rude{short, &now}, in)
			now.Store(true)
			return 1, err
		}, one)
		if err := c.Submit(bg, "k"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := a.Do(bg, "h"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		_ = stage.Shutdown(bg, a, first, c)
		require.Zero(t, p.Stats().Running, "permits")
	})
}
