package workstealing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// callers runs f with each kind of caller of Join, on pools of several sizes.
func callers(t *testing.T, f func(t *testing.T, p *workstealing.Pool, run func(f func()))) {
	main := func(f func()) func(context.Context) error { return func(context.Context) error { f(); return nil } }
	for name, run := range map[string]func(p *workstealing.Pool, f func()){
		"task":           in,
		"goroutine":      func(_ *workstealing.Pool, f func()) { wait(func() { f() }) },
		"fifo":           func(_ *workstealing.Pool, f func()) { wait(func() { _ = fifo.Run(bg, main(f)) }) },
		"fifo in a task": func(p *workstealing.Pool, f func()) { in(p, func() { _ = fifo.Run(bg, main(f)) }) },
		"another pool": func(_ *workstealing.Pool, f func()) {
			q := workstealing.New(workstealing.Options{Workers: 1})
			in(q, f)
			_ = q.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			sizes(t, func(t *testing.T, n int) {
				withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
					f(t, p, func(f func()) { run(p, f) })
				})
			})
		})
	}
}

// wait runs f on a goroutine, which f may exit.
func wait(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestJoinReturnsBoth(t *testing.T) {
	errA, errB := errors.New("a"), errors.New("b")
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		for _, c := range []struct{ a, b, want error }{{nil, nil, nil}, {errA, nil, errA}, {nil, errB, errB}, {errA, errB, errA}} {
			run(func() {
				x, y, err := workstealing.Join(bg, p,
					func(context.Context) (int, error) { return 1, c.a },
					func(context.Context) (string, error) { return "y", c.b })
				if x != 1 || y != "y" || err != c.want {
					t.Error(x, y, err, "want", c.want)
				}
				_, nothing, err := workstealing.Join(bg, p,
					func(context.Context) (int, error) { return 1, c.a },
					func(context.Context) (fmt.Stringer, error) { return nil, c.b })
				if nothing != nil || err != c.want {
					t.Error(nothing, err, "want", c.want)
				}
				if v, err := fibOn(p, 12); v != 144 || err != nil {
					t.Error(v, err)
				}
			})
		}
	})
}

// The two sides may wait for each other, and nested sides for any other, however small the pool is.
func TestJoinSidesWaitForEachOther(t *testing.T) {
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		run(func() {
			var ping, pong mvar.MVar[int]
			const rounds = 50
			_, _, err := workstealing.Join(bg, p,
				func(ctx context.Context) (int, error) {
					for i := range rounds {
						_ = ping.Put(ctx, i)
						_, _ = pong.Take(ctx)
					}
					return 0, nil
				},
				func(ctx context.Context) (int, error) {
					for range rounds {
						v, _ := ping.Take(ctx)
						_ = pong.Put(ctx, v)
					}
					return 0, nil
				})
			if err != nil {
				t.Error(err)
			}

			// Each of the sixteen leaves waits for its right neighbour.
			var filled [17]promise.Promise[int]
			_ = filled[16].Fill(0)
			var tree func(ctx context.Context, lo, hi int) (int, error)
			tree = func(ctx context.Context, lo, hi int) (int, error) {
				if hi-lo == 1 {
					v, err := filled[hi].Await(ctx)
					_ = filled[lo].Fill(v + 1)
					return v + 1, err
				}
				x, _, err := workstealing.Join(ctx, p,
					func(ctx context.Context) (int, error) { return tree(ctx, lo, (lo+hi)/2) },
					func(ctx context.Context) (int, error) { return tree(ctx, (lo+hi)/2, hi) })
				return x, err
			}
			if v, err := tree(bg, 0, 16); v != 16 || err != nil {
				t.Error(v, err)
			}
		})
	})
}

func TestJoinDoneContextRunsNothing(t *testing.T) {
	cause := errors.New("cause")
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		run(func() {
			ctx, cancel := context.WithCancelCause(bg)
			cancel(cause)
			never := func(context.Context) (int, error) { t.Error("runs"); return 0, nil }
			if _, _, err := workstealing.Join(ctx, p, never, never); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	})
}

// A Join that has begun waits for both sides, even if ctx has ended.
func TestJoinIsNotCancelledMidway(t *testing.T) {
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		run(func() {
			ctx, cancel := context.WithCancel(bg)
			var ended atomic.Bool
			_, _, err := workstealing.Join(ctx, p,
				func(ctx context.Context) (int, error) {
					cancel()
					_, err := promise.New[int]().Await(ctx)
					return 0, err
				},
				func(context.Context) (int, error) {
					for range 10 {
						suspend.Yield()
					}
					ended.Store(true)
					return 0, nil
				})
			if !errors.Is(err, context.Canceled) || !ended.Load() {
				t.Error(err, ended.Load())
			}
		})
	})
}

func TestJoinOnClosedPool(t *testing.T) {
	inTime(t, func() {
		p := workstealing.New(workstealing.Options{Workers: 1})
		_ = p.Close()
		never := func(context.Context) (int, error) { t.Error("runs"); return 0, nil }
		if _, _, err := workstealing.Join(bg, p, never, never); !errors.Is(err, suspend.ErrClosed) {
			t.Error(err)
		}
		if err := workstealing.For(bg, p, 0, 10, 1, func(context.Context, int, int) error { t.Error("runs"); return nil }); !errors.Is(err, suspend.ErrClosed) {
			t.Error(err)
		}
	})
}

// A task of a closing pool can still call Join.
func TestJoinWhileClosing(t *testing.T) {
	inTime(t, func() {
		p := workstealing.New(workstealing.Options{Workers: 2})
		closing := promise.New[int]()
		ok := make(chan bool, 1)
		_ = p.Go(func() {
			_, _ = closing.Await(bg)
			v, err := fibOn(p, 15)
			ok <- v == 610 && err == nil
		})
		go func() {
			eventually(t, "closed", func() bool { return p.Go(func() {}) != nil })
			_ = closing.Fill(1)
		}()
		_ = p.Close()
		if !<-ok {
			t.Error("wrong")
		}
	})
}

// A way is how a side ends.
type way string

var ways = []way{"return", "error", "panic", "exit"}

func (w way) end(side string) (int, error) {
	switch w {
	case "error":
		return 0, errors.New(side + " error")
	case "panic":
		panic(side + " panic")
	case "exit":
		runtime.Goexit()
	}
	return 0, nil
}

// expected returns how a Join ends if its sides end in the given ways.
func expected(a, b way) string {
	for _, w := range []struct {
		side string
		way  way
	}{{"a", a}, {"b", b}} {
		if w.way == "panic" || w.way == "exit" {
			return w.side + " " + string(w.way)
		}
	}
	if a == "error" {
		return "a error"
	} else if b == "error" {
		return "b error"
	}
	return "<nil>"
}

// A Join ends in the same way whether b was stolen or not. Both sides have ended by then.
func TestJoinEndsAsItsSidesDo(t *testing.T) {
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		for _, stolen := range []bool{false, true} {
			for _, a := range ways {
				for _, b := range ways {
					if got, want := joinOnce(t, p, run, stolen, a, b), expected(a, b); got != want {
						t.Errorf("stolen=%v a=%s b=%s: %s, want %s", stolen, a, b, got, want)
					}
				}
			}
		}
		v := 0 // checks that the pool still works
		run(func() { v, _ = fibOn(p, 10) })
		if v != 55 {
			t.Error(v)
		}
	})
}

func joinOnce(t *testing.T, p *workstealing.Pool, run func(func()), stolen bool, a, b way) (got string) {
	var began, leaving promise.Promise[int] // when b begins; when a may leave
	var endedA, endedB atomic.Int32
	run(func() {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				got = fmt.Sprint(v)
			} else if !returned {
				got = "exit"
				if a == "exit" {
					got = "a exit"
				} else if b == "exit" {
					got = "b exit"
				}
			}
			if endedA.Load() != 1 || endedB.Load() != 1 {
				t.Errorf("stolen=%v a=%s b=%s: ended %d and %d times", stolen, a, b, endedA.Load(), endedB.Load())
			}
		}()
		_, _, err := workstealing.Join(bg, p,
			func(ctx context.Context) (int, error) {
				defer endedA.Add(1)
				if stolen {
					_, _ = began.Await(ctx)
				}
				_ = leaving.Fill(1)
				return a.end("a")
			},
			func(ctx context.Context) (int, error) {
				defer endedB.Add(1)
				_ = began.Fill(1)
				if stolen {
					_, _ = leaving.Await(ctx)
					for range 5 { // a leaves first
						suspend.Yield()
					}
				}
				return b.end("b")
			})
		returned = true
		got = fmt.Sprint(err)
	})
	return got
}

// Another worker steals b, while a does not suspend.
func TestJoinStolenByWorker(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 2}, func(p *workstealing.Pool) {
		for _, a := range ways {
			for _, b := range ways {
				var began atomic.Bool
				var ended atomic.Int32
				in(p, func() {
					defer func() {
						_ = recover()
						if ended.Load() != 1 {
							t.Errorf("a=%s b=%s: b ended %d times", a, b, ended.Load())
						}
					}()
					_, _, _ = workstealing.Join(bg, p,
						func(context.Context) (int, error) {
							for !began.Load() {
								runtime.Gosched()
							}
							return a.end("a")
						},
						func(context.Context) (int, error) {
							defer ended.Add(1)
							began.Store(true)
							suspend.Yield()
							return b.end("b")
						})
				})
			}
		}
		if p.Stats().Steals == 0 {
			t.Error("nothing was stolen")
		}
	})
}

// Tasks suspend, and move to other workers. Every fork runs once, and every value reaches its Join.
func TestForksRunOnce(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			const depth, trees = 9, 4
			for range scale(10) {
				seed := rand.Uint64()
				var wg sync.WaitGroup
				for k := range trees {
					var ran [1 << (depth + 1)]atomic.Int32
					var visit func(ctx context.Context, node int) (int, error)
					visit = func(ctx context.Context, node int) (int, error) {
						ran[node].Add(1)
						r := rand.New(rand.NewPCG(seed, uint64(k)<<32|uint64(node)))
						pause := func() {
							switch r.IntN(12) {
							case 0:
								suspend.Yield()
							case 1: // suspends until another task resumes it
								pr := promise.New[int]()
								_ = p.Go(func() { _ = pr.Fill(1) })
								_, _ = pr.Await(ctx)
							}
						}
						pause()
						if node >= 1<<depth {
							return 1, nil
						}
						x, y, err := workstealing.Join(ctx, p,
							func(ctx context.Context) (int, error) { return visit(ctx, 2*node) },
							func(ctx context.Context) (int, error) { return visit(ctx, 2*node+1) })
						pause()
						return x + y, err
					}
					wg.Add(1)
					_ = p.Go(func() {
						defer wg.Done()
						if v, err := visit(bg, 1); v != 1<<depth || err != nil {
							t.Errorf("seed=%d: %d, %v", seed, v, err)
						}
						for node := 1; node < len(ran); node++ {
							if n := ran[node].Load(); n != 1 {
								t.Errorf("seed=%d: node %d ran %d times", seed, node, n)
							}
						}
					})
				}
				wg.Wait()
			}
		})
	})
}

// Usually Join itself allocates nothing. The two closures belong to the caller.
func TestJoinAllocs(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		in(p, func() {
			f := func(context.Context) (int, error) { return 1, nil }
			if n := testing.AllocsPerRun(1000, func() { _, _, _ = workstealing.Join(bg, p, f, f) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	})
}

// A fork that has ended is not kept alive, and neither are its values.
func TestJoinKeepsNothingAlive(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		freed := make(chan struct{}, 2)
		type large [1 << 16]byte
		for _, stolen := range []bool{false, true} {
			in(p, func() {
				x := new(large)
				runtime.AddCleanup(x, func(int) { freed <- struct{}{} }, 0)
				var began promise.Promise[int]
				_, y, _ := workstealing.Join(bg, p,
					func(ctx context.Context) (int, error) {
						if stolen {
							return began.Await(ctx)
						}
						return 0, nil
					},
					func(context.Context) (*large, error) { _ = began.Fill(1); return x, nil })
				if y != x {
					t.Error("another")
				}
			})
		}
		for range 2 {
			eventually(t, "freed", func() bool {
				runtime.GC()
				select {
				case <-freed:
					return true
				default:
					return false
				}
			})
		}
	})
}

func fibOn(p *workstealing.Pool, n int) (int, error) {
	if n < 2 {
		return n, nil
	}
	x, y, err := workstealing.Join(bg, p,
		func(context.Context) (int, error) { return fibOn(p, n-1) },
		func(context.Context) (int, error) { return fibOn(p, n-2) })
	return x + y, err
}
