package lazy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
	modes   = map[string]lazy.Mode{"Restart": lazy.Restart, "Record": lazy.Record, "Protect": lazy.Protect}
)

func one(context.Context) (int, error) { return 1, nil }

func TestMain(m *testing.M) { schedtest.Main(m) }

// all runs each of fs as a task of the next scheduler, and waits for them.
func all(t *testing.T, next func() suspend.Spawner, fs ...func()) {
	t.Helper()
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Add(1)
		if err := next().Go(func() { defer wg.Done(); f() }); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

func TestForcedByAllSchedulersTheFunctionRunsOnce(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for range 50 {
			runs := 0
			l := lazy.New(func(ctx context.Context) (int, error) {
				runs++
				for range 3 {
					suspend.Yield()
				}
				return 7, errOops
			}, lazy.Restart)
			var fs []func()
			for range 20 {
				fs = append(fs, func() {
					if v, err := l.Force(bg); v != 7 || err != errOops {
						t.Errorf("Force = %d, %v", v, err)
					}
				})
			}
			all(t, next, fs...)
			if v, ok, err := l.Value(); v != 7 || err != errOops || !ok || runs != 1 {
				t.Errorf("Value = %d, %v, %v after %d runs", v, err, ok, runs)
			}
		}
	})
}

func TestDoneContextFailsThoughReady(t *testing.T) {
	ctx, stop := context.WithCancelCause(bg)
	stop(errOops)
	runs := 0
	l := lazy.New(func(context.Context) (int, error) { runs++; return 7, nil }, lazy.Restart)
	for range 2 {
		if v, err := l.Force(ctx); v != 0 || !errors.Is(err, errOops) || !errors.Is(err, context.Canceled) {
			t.Errorf("Force = %d, %v", v, err)
		}
		if v, err := l.Force(bg); v != 7 || err != nil || runs != 1 {
			t.Errorf("Force = %d, %v after %d runs", v, err, runs)
		}
	}
}

func TestAWaiterThatIsCancelledLeavesTheRunAlone(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var gate promise.Promise[int]
				l := lazy.New(func(ctx context.Context) (int, error) { return gate.Await(ctx) }, mode)
				ctx, stop := cancel.New(bg)
				var errs [2]error
				var vs [2]int
				_ = s.Go(func() { vs[0], errs[0] = l.Force(bg) })
				_ = s.Go(func() { vs[1], errs[1] = l.Force(ctx) })
				schedtest.Settle()
				stop(errOops)
				schedtest.Settle()
				if !errors.Is(errs[1], errOops) {
					t.Errorf("Force = %v", errs[1])
				}
				if _, ok, _ := l.Value(); ok {
					t.Error("ready")
				}
				_ = gate.Fill(3)
				schedtest.Settle()
				if vs != [2]int{3, 0} || errs[0] != nil {
					t.Errorf("Force = %v, %v", vs, errs)
				}
			})
		})
	}
}

// The task that runs the function is cancelled: while the function runs, or after it returned a value or an error, and with or
// without waiters.
func TestTheRunnerIsCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		mode   lazy.Mode
		heeds  bool // the function ends with its context
		fails  bool // the function returns an error instead of a value
		before bool // the cancellation comes before the other tasks
		runs   int
		first  error // the result of the cancelled task
		rest   error
	}{
		"Restart":                  {mode: lazy.Restart, heeds: true, runs: 2, first: context.Canceled},
		"Restart, before":          {mode: lazy.Restart, heeds: true, before: true, runs: 2, first: context.Canceled},
		"Restart, another error":   {mode: lazy.Restart, fails: true, runs: 2, first: errOops},
		"Restart, a value":         {mode: lazy.Restart, runs: 1},
		"Record":                   {mode: lazy.Record, heeds: true, runs: 1, first: context.Canceled, rest: context.Canceled},
		"Record, another error":    {mode: lazy.Record, fails: true, runs: 1, first: errOops, rest: errOops},
		"Record, a value":          {mode: lazy.Record, runs: 1},
		"Protect":                  {mode: lazy.Protect, heeds: true, runs: 1},
		"Protect, another error":   {mode: lazy.Protect, fails: true, runs: 1, first: errOops, rest: errOops},
		"Protect, the error first": {mode: lazy.Protect, fails: true, before: true, runs: 1, first: errOops, rest: errOops},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var gate promise.Promise[int]
				runs := 0
				l := lazy.New(func(ctx context.Context) (int, error) {
					if runs++; runs > 1 {
						return 9, nil
					}
					if !test.heeds {
						ctx = bg
					}
					v, err := gate.Await(ctx)
					if err == nil && test.fails {
						err = errOops
					}
					return v, err
				}, test.mode)
				ctx, stop := cancel.New(bg)
				var first error
				var rest []error
				ended := false
				_ = s.Go(func() { _, first = l.Force(ctx); ended = true })
				schedtest.Settle()
				come := func() {
					for range 3 {
						_ = s.Go(func() { _, err := l.Force(bg); rest = append(rest, err) })
					}
					schedtest.Settle()
				}
				if !test.before {
					come()
				}
				stop(nil)
				schedtest.Settle()
				_ = gate.Fill(9)
				schedtest.Settle()
				if test.before {
					come()
				}
				if !ended || !errors.Is(first, test.first) || len(rest) != 3 || runs != test.runs {
					t.Errorf("first: %v (%v), rest: %v, %d runs", first, ended, rest, runs)
				}
				for _, err := range rest {
					if !errors.Is(err, test.rest) {
						t.Errorf("rest: %v", err)
					}
				}
			})
		})
	}
}

// After a failed run the next waiter should run the function, but it is being cancelled. It passes the run on, or runs the
// function itself if its cancellation was too late.
func TestTheTurnIsPassedOn(t *testing.T) {
	for name, stopFirst := range map[string]bool{"cancelled before the turn": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var ran []string
				var gate promise.Promise[int]
				f := func(ctx context.Context) (int, error) {
					who := ctx.Value(key{}).(string)
					ran = append(ran, who)
					if who == "a" {
						return gate.Await(bg)
					}
					return 5, nil
				}
				l := lazy.New(f, lazy.Restart)
				stops := map[string]func(error){}
				got := map[string]error{}
				for _, who := range []string{"a", "b", "c"} {
					ctx, stop := cancel.New(context.WithValue(bg, key{}, who))
					stops[who] = stop
					_ = s.Go(func() { _, got[who] = l.Force(ctx) })
				}
				schedtest.Settle()
				stops["a"](nil)
				if stopFirst {
					stops["b"](nil)
				}
				_ = gate.Fail(errOops)
				suspend.Yield() // a returns, and chooses the next runner
				if !stopFirst {
					stops["b"](nil)
				}
				schedtest.Settle()
				if got["a"] != errOops || got["c"] != nil || !errors.Is(got["b"], context.Canceled) || !slices.Equal(ran, []string{"a", "c"}) {
					t.Errorf("ran %v, got %v", ran, got)
				}
				stops["c"](nil)
			})
		})
	}
}

type key struct{}

// If nobody waits, a cancelled run leaves the Lazy as it was before.
func TestRestartFromIdle(t *testing.T) {
	ctx, stop := context.WithCancel(bg)
	runs := 0
	l := lazy.New(func(ctx context.Context) (int, error) {
		if runs++; runs == 1 {
			stop()
		}
		return runs, suspend.Err(ctx)
	}, lazy.Restart)
	if _, err := l.Force(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Force = %v", err)
	}
	if _, ok, _ := l.Value(); ok {
		t.Error("ready")
	}
	if v, err := l.Force(bg); v != 2 || err != nil {
		t.Errorf("Force = %d, %v", v, err)
	}
}

func TestAnErrorIsRememberedInEveryOtherMode(t *testing.T) {
	for name, mode := range modes {
		runs := 0
		l := lazy.New(func(ctx context.Context) (int, error) { runs++; return 0, errOops }, mode)
		for range 3 {
			if _, err := l.Force(bg); err != errOops || runs != 1 {
				t.Errorf("%s: %v after %d runs", name, err, runs)
			}
		}
	}
}

func TestProtectKeepsTheValuesOfTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(context.WithValue(bg, key{}, "v"))
	l := lazy.New(func(ctx context.Context) (any, error) {
		stop()
		return ctx.Value(key{}), suspend.Err(ctx)
	}, lazy.Protect)
	if v, err := l.Force(ctx); v != "v" || err != nil {
		t.Errorf("Force = %v, %v", v, err)
	}
}

func TestAPanicIsRaisedInAll(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var gate promise.Promise[int]
		l := lazy.New(func(context.Context) (int, error) {
			_, _ = gate.Await(bg)
			panic(errOops)
		}, lazy.Restart)
		force := func() {
			defer func() {
				if v := recover(); v != errOops {
					t.Errorf("panic %v", v)
				}
			}()
			_, _ = l.Force(bg)
			t.Error("Force has returned")
		}
		watch := func() {
			defer func() {
				if v := recover(); v != errOops {
					t.Errorf("panic %v", v)
				}
			}()
			_, _ = suspend.Do(bg, l.ValueOp())
			t.Error("ValueOp has returned")
		}
		schedtest.Run(t, s, force, force, watch, force, func() { _ = gate.Fill(1) })
		schedtest.Run(t, s, force, watch)
		defer func() {
			if v := recover(); v != errOops {
				t.Errorf("panic %v", v)
			}
		}()
		_, _, _ = l.Value()
	})
}

func TestAGoexitEndsOneTask(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var gate promise.Promise[int]
		started := make(chan struct{})
		l := lazy.New(func(context.Context) (int, error) {
			close(started)
			_, _ = gate.Await(bg)
			runtime.Goexit()
			return 0, nil
		}, lazy.Restart)
		force := func() {
			if _, err := l.Force(bg); !errors.Is(err, suspend.ErrAbandoned) || err.Error() != "lazy: the function did not return" {
				t.Errorf("Force = %v", err)
			}
		}
		ended := make(chan bool, 1)
		_ = s.Go(func() {
			returned := false
			defer func() { ended <- returned }()
			_, _ = l.Force(bg)
			returned = true
		})
		<-started
		schedtest.Run(t, s, force, force, func() { _ = gate.Fill(1) })
		force()
		if <-ended {
			t.Error("Force has returned where the function exited")
		}
	})
}

func TestNewPanics(t *testing.T) {
	schedtest.Panics(t, "lazy: New with a nil function", func() { lazy.New[int](nil, lazy.Restart) })
	schedtest.Panics(t, "lazy: New with an unknown mode", func() { lazy.New(one, lazy.Retry+1) })
}

// A function forces its own value on the same goroutine, with a context that is derived from its own, and with one that is not.
func TestRecursion(t *testing.T) {
	for name, inner := range map[string]func(ctx context.Context) context.Context{
		"derived":   func(ctx context.Context) context.Context { c, stop := context.WithCancel(ctx); _ = stop; return c },
		"unrelated": func(context.Context) context.Context { return bg },
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				schedtest.Run(t, s, func() {
					var self *lazy.Lazy[int]
					self = lazy.New(func(ctx context.Context) (int, error) {
						v, err := self.Force(inner(ctx))
						if !errors.Is(err, lazy.ErrRecursive) {
							t.Errorf("Force = %d, %v", v, err)
						}
						return 1, nil
					}, lazy.Restart)
					if v, err := self.Force(bg); v != 1 || err != nil {
						t.Errorf("Force = %d, %v", v, err)
					}

					ring := make([]*lazy.Lazy[int], 5)
					for i := range ring {
						ring[i] = lazy.New(func(ctx context.Context) (int, error) { return ring[(i+1)%5].Force(inner(ctx)) }, lazy.Restart)
					}
					if _, err := ring[3].Force(bg); err != lazy.ErrRecursive {
						t.Errorf("Force = %v", err)
					}
				})
			})
		})
	}
}

// A task that the function has started and waits for, on any scheduler, forces the same value.
func TestRecursionByATaskOfTheFunction(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for range 20 {
			var l *lazy.Lazy[int]
			l = lazy.New(func(ctx context.Context) (int, error) {
				var p promise.Promise[int]
				other := lazy.New(func(ctx context.Context) (int, error) { return l.Force(ctx) }, lazy.Restart)
				_ = next().Go(func() { _ = p.Resolve(other.Force(ctx)) })
				return p.Await(bg)
			}, lazy.Restart)
			var err error
			all(t, next, func() { _, err = l.Force(bg) })
			if err != lazy.ErrRecursive {
				t.Fatalf("Force = %v", err)
			}
		}
	})
}

// A task keeps the context of an inner function that has ended. If the outer function passed its own context to the inner Force,
// the task is still a part of the outer function. If the two functions only ran on the same goroutine, it is not.
func TestAPartThatOutlivesTheFunction(t *testing.T) {
	for given, want := range map[bool]error{true: lazy.ErrRecursive, false: nil} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var outer *lazy.Lazy[int]
			var late promise.Promise[error]
			outer = lazy.New(func(ctx context.Context) (int, error) {
				var kept context.Context
				inner := lazy.New(func(ctx context.Context) (int, error) { kept = ctx; return 1, nil }, lazy.Record)
				if !given {
					ctx = bg
				}
				_, _ = inner.Force(ctx)
				_ = s.Go(func() { _, err := outer.Force(kept); _ = late.Fill(err) })
				suspend.Yield()
				_, refused, _ := late.Try()
				require.Equal(t, given, refused)
				return 1, nil
			}, lazy.Record)
			_, err := outer.Force(bg)
			require.NoError(t, err)
			err, _ = late.Await(bg)
			require.Equal(t, want, err)
		})
	}
}

// Three functions force each other. Each runs in a task of its own on two or more schedulers: in one order, in the other, and all
// at once.
func TestACycleOfTasks(t *testing.T) {
	orders := map[string][]int{"forward": {0, 1, 2}, "backward": {2, 1, 0}, "at once": nil}
	for name, order := range orders {
		for kind, derived := range map[string]bool{"derived": true, "unrelated": false} {
			t.Run(name+", "+kind, func(t *testing.T) {
				schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
					for range 30 {
						var begun [3]promise.Promise[int]
						var go_ [3]promise.Promise[int]
						var ring [3]*lazy.Lazy[int]
						recursive := atomic.Int32{}
						for i := range ring {
							ring[i] = lazy.New(func(ctx context.Context) (int, error) {
								_ = begun[i].Fill(1)
								_, _ = go_[i].Await(bg)
								if !derived {
									ctx = bg
								}
								v, err := ring[(i+1)%3].Force(ctx)
								if err == lazy.ErrRecursive {
									recursive.Add(1)
								}
								return v, err
							}, lazy.Restart)
						}
						var fs []func()
						for i := range ring {
							fs = append(fs, func() {
								if _, err := ring[i].Force(bg); err != lazy.ErrRecursive {
									t.Errorf("Force = %v", err)
								}
							})
						}
						fs = append(fs, func() {
							for i := range begun {
								_, _ = begun[i].Await(bg)
							}
							for _, i := range order {
								_ = go_[i].Fill(1)
								suspend.Yield()
							}
							for i := range go_ {
								_ = go_[i].Fill(1)
							}
						})
						all(t, next, fs...)
						if recursive.Load() != 3 {
							t.Errorf("%d saw it", recursive.Load())
						}
					}
				})
			})
		}
	}
}

// A function forces many parts at once. A cycle through any of them is found, while parts come and go.
func TestACycleThroughOneOfManyParts(t *testing.T) {
	for closing := range 5 {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var gates [5]promise.Promise[int]
			var slow [5]*lazy.Lazy[int]
			var whole *lazy.Lazy[int]
			for i := range slow {
				slow[i] = lazy.New(func(ctx context.Context) (int, error) {
					if v, err := gates[i].Await(bg); v == 0 {
						return v, err
					}
					return whole.Force(ctx)
				}, lazy.Restart)
				_ = s.Go(func() { _, _ = slow[i].Force(bg) })
			}
			schedtest.Settle()
			ended := 0
			whole = lazy.New(func(ctx context.Context) (int, error) {
				for i := range slow {
					_ = s.Go(func() { _, _ = slow[i].Force(ctx); ended++ })
				}
				for ended < len(slow) {
					suspend.Yield()
				}
				return 1, nil
			}, lazy.Restart)
			var got int
			_ = s.Go(func() { got, _ = whole.Force(bg) })
			schedtest.Settle()
			for k := range 3 { // three parts end before, in one order or the other
				i := (closing + 1 + k) % 5
				if closing%2 == 0 {
					i = (closing + 4 - k) % 5
				}
				_ = gates[i].Fill(0)
				schedtest.Settle()
			}
			_ = gates[closing].Fill(1)
			schedtest.Settle()
			if _, ok, err := slow[closing].Value(); !ok || err != lazy.ErrRecursive {
				t.Errorf("%d: %v, %v", closing, err, ok)
			}
			for i := range gates {
				_ = gates[i].Fill(0)
			}
			schedtest.Settle()
			if got != 1 || ended != 5 {
				t.Errorf("%d: got %d, %d ended", closing, got, ended)
			}
		})
	}
}

// Many tasks force the values of an acyclic graph and are cancelled at random. No Force returns ErrRecursive, each function
// succeeds once, and no task waits in the end.
func TestStressOnAGraph(t *testing.T) {
	rounds := 150
	if testing.Short() || schedtest.Race {
		rounds = 30
	}
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var mu sync.Mutex
		spawner := func() suspend.Spawner { mu.Lock(); defer mu.Unlock(); return next() }
		var values, stopped, restarts atomic.Int64
		for round := range rounds {
			const n = 30
			var ls [n]*lazy.Lazy[int]
			var succeeded [n]atomic.Int32
			for i := range ls {
				ls[i] = lazy.New(func(ctx context.Context) (int, error) {
					rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
					sum := 1
					for range rng.IntN(4) {
						if i == 0 {
							break
						}
						c := ctx
						if rng.IntN(4) == 0 {
							c = bg
						}
						j := rng.IntN(i)
						var v int
						var err error
						if rng.IntN(3) == 0 { // in a task of its own
							var p promise.Promise[int]
							_ = spawner().Go(func() { _ = p.Resolve(ls[j].Force(c)) })
							v, err = p.Await(bg)
						} else {
							v, err = ls[j].Force(c)
						}
						if err != nil {
							restarts.Add(1)
							return 0, err
						}
						sum += v
						suspend.Yield()
					}
					// A part that was called with ctx fails if ctx ends. With another error, the failure would be kept.
					if err := suspend.Err(ctx); err != nil {
						restarts.Add(1)
						return 0, err
					}
					succeeded[i].Add(1)
					return sum, nil
				}, lazy.Restart)
			}
			var fs []func()
			for k := range 40 {
				fs = append(fs, func() {
					rng := rand.New(rand.NewPCG(uint64(round), uint64(1000+k)))
					for range 5 {
						ctx, stop := cancel.New(bg)
						if rng.IntN(2) == 0 {
							go stop(errOops)
						}
						i := rng.IntN(n)
						_, err := ls[i].Force(ctx)
						switch {
						case err == nil:
							values.Add(1)
							if succeeded[i].Load() != 1 {
								t.Errorf("%d succeeded %d times", i, succeeded[i].Load())
							}
						case errors.Is(err, errOops):
							stopped.Add(1)
						default:
							t.Errorf("Force = %v", err)
						}
						stop(nil)
					}
				})
			}
			all(t, next2(&mu, next), fs...)
		}
		t.Logf("%d values, %d cancelled, %d runs stopped", values.Load(), stopped.Load(), restarts.Load())
		if values.Load() == 0 || stopped.Load() == 0 || restarts.Load() == 0 {
			t.Error("an outcome was not covered")
		}
	})
}

func next2(mu *sync.Mutex, next func() suspend.Spawner) func() suspend.Spawner {
	return func() suspend.Spawner { mu.Lock(); defer mu.Unlock(); return next() }
}

// The same holds with cycles: a Force may return an error, but each Force returns.
func TestStressOnCycles(t *testing.T) {
	rounds := 200
	if testing.Short() || schedtest.Race {
		rounds = 50
	}
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var mu sync.Mutex
		spawner := next2(&mu, next)
		outcomes := map[string]*atomic.Int64{"value": {}, "recursive": {}, "cancelled": {}}
		for round := range rounds {
			const n = 12
			var ls [n]*lazy.Lazy[int]
			for i := range ls {
				ls[i] = lazy.New(func(ctx context.Context) (int, error) {
					rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
					for range rng.IntN(3) {
						j := rng.IntN(n)
						suspend.Yield()
						if rng.IntN(2) == 0 {
							var p promise.Promise[int]
							_ = spawner().Go(func() { _ = p.Resolve(ls[j].Force(ctx)) })
							if _, err := p.Await(bg); err != nil {
								return 0, err
							}
							continue
						}
						c := ctx
						if rng.IntN(2) == 0 {
							c = bg
						}
						if _, err := ls[j].Force(c); err != nil {
							return 0, err
						}
					}
					return 1, nil
				}, lazy.Restart)
			}
			var fs []func()
			for k := range 20 {
				fs = append(fs, func() {
					ctx, stop := cancel.New(bg)
					if k%4 == 0 {
						go stop(errOops)
					}
					_, err := ls[k%n].Force(ctx)
					switch {
					case err == nil:
						outcomes["value"].Add(1)
					case err == lazy.ErrRecursive:
						outcomes["recursive"].Add(1)
					case errors.Is(err, errOops):
						outcomes["cancelled"].Add(1)
					default:
						t.Errorf("Force = %v", err)
					}
					stop(nil)
				})
			}
			all(t, spawner, fs...)
		}
		for name, n := range outcomes {
			t.Log(name, n.Load())
			if n.Load() == 0 {
				t.Errorf("not covered: %s", name)
			}
		}
	})
}

func TestValueOp(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			runs := 0
			a := lazy.New(func(context.Context) (int, error) { runs++; return 1, nil }, lazy.Restart)
			b := lazy.New(func(context.Context) (string, error) { return "b", errOops }, lazy.Restart)
			ca, cb := suspend.CaseOf(a.ValueOp()), suspend.CaseOf(b.ValueOp())
			if won, err := suspend.TrySelect(bg, ca, cb); won != nil || err != nil {
				t.Errorf("TrySelect = %v, %v", won, err)
			}
			_ = s.Go(func() { suspend.Yield(); _, _ = b.Force(bg) })
			won, err := suspend.Select(bg, ca, cb)
			if won != suspend.Selectable(cb) || err != nil {
				t.Fatalf("Select = %v, %v", won, err)
			}
			if v, err := cb.Result(); v != "b" || err != errOops {
				t.Errorf("Result = %v, %v", v, err)
			}
			if runs != 0 {
				t.Error("a losing ValueOp has run the function")
			}
			ctx, stop := cancel.New(bg)
			_ = s.Go(func() { suspend.Yield(); stop(errOops) })
			if _, err := suspend.Do(ctx, a.ValueOp()); !errors.Is(err, errOops) {
				t.Errorf("Do = %v", err)
			}
			var p promise.Promise[int]
			suspend.Then(bg, a.ValueOp(), executor{}, func(v int, err error) { _ = p.Resolve(v, err) })
			if v, err := a.Force(bg); v != 1 || err != nil {
				t.Errorf("Force = %v, %v", v, err)
			}
			if v, err := p.Await(bg); v != 1 || err != nil {
				t.Errorf("Then: %v, %v", v, err)
			}
			if v, err := suspend.Do(bg, a.ValueOp()); v != 1 || err != nil || runs != 1 {
				t.Errorf("Do = %v, %v after %d runs", v, err, runs)
			}
		})
	})
}

// executor runs callbacks on goroutines.
type executor struct{}

func (executor) Execute(f func()) error { go f(); return nil }

// A ValueOp continues to wait while a stopped function runs again.
func TestValueOpOutlastsARestart(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ctx, stop := context.WithCancel(bg)
		runs := 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			if runs++; runs == 1 {
				stop()
			}
			return runs, suspend.Err(ctx)
		}, lazy.Restart)
		got := 0
		_ = s.Go(func() { got, _ = suspend.Do(bg, l.ValueOp()) })
		schedtest.Settle()
		_, _ = l.Force(ctx)
		schedtest.Settle()
		if got != 0 || runs != 1 {
			t.Errorf("got %d after %d runs", got, runs)
		}
		_, _ = l.Force(bg)
		schedtest.Settle()
		if got != 2 {
			t.Errorf("got %d", got)
		}
	})
}

// The context that the function gets passes cancellations on as the caller's context does.
func TestTheContextOfTheFunction(t *testing.T) {
	for name, make := range map[string]func() (context.Context, func(error)){
		"ours": func() (context.Context, func(error)) { return cancel.New(bg) },
		"std": func() (context.Context, func(error)) {
			ctx, stop := context.WithCancelCause(bg)
			return ctx, stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := make()
			outer := lazy.New(func(ctx context.Context) (int, error) {
				inner := lazy.New(func(ctx context.Context) (int, error) {
					child, stopChild := context.WithTimeout(ctx, time.Hour)
					defer stopChild()
					called := false
					ctx.(interface {
						AfterFunc(func()) func() bool
					}).AfterFunc(func() { called = true })
					if name == "std" {
						stop(errOops)
					} else if stop(errOops); !called {
						t.Error("not called synchronously")
					}
					<-child.Done()
					if context.Cause(child) != errOops || context.Cause(ctx) != errOops {
						t.Errorf("causes %v, %v", context.Cause(child), context.Cause(ctx))
					}
					return 0, suspend.Err(ctx)
				}, lazy.Restart)
				return inner.Force(ctx)
			}, lazy.Restart)
			if _, err := outer.Force(ctx); !errors.Is(err, errOops) {
				t.Errorf("Force = %v", err)
			}
		})
	}
}

// The function may print its context while its parts come and go. Under -race, a print that reads the graph fails.
func TestTheContextCanBePrinted(t *testing.T) {
	outer := lazy.New(func(ctx context.Context) (int, error) {
		var parts sync.WaitGroup
		for range 50 {
			part := lazy.New(one, lazy.Record)
			parts.Go(func() { _, _ = part.Force(ctx) })
			if s := fmt.Sprint(ctx); s != "lazy.Force" {
				t.Errorf("printed %q", s)
				break
			}
		}
		parts.Wait()
		return 1, nil
	}, lazy.Record)
	_, _ = outer.Force(bg)
}

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lazy.New(func(ctx context.Context) (int, error) { return 1, suspend.Sleep(ctx, time.Hour) }, lazy.Restart)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		go func() { _, _ = l.Force(t.Context()) }()
		synctest.Wait()
		if _, err := l.Force(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if v, err := l.Force(t.Context()); v != 1 || err != nil {
			t.Errorf("Force = %d, %v", v, err)
		}
	})
}

// After the run, the function is freed, and so is a cancelled waiter.
func TestNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var captured schedtest.Objects
		var gate promise.Promise[int]
		defer func() { _ = gate.Fill(1) }()
		var ls []any
		make := func(end func(ctx context.Context) (int, error)) *lazy.Lazy[int] {
			p := captured.New()
			l := lazy.New(func(ctx context.Context) (int, error) {
				runtime.KeepAlive(p)
				return end(ctx)
			}, lazy.Restart)
			ls = append(ls, l)
			return l
		}
		_, _ = make(func(context.Context) (int, error) { return 1, nil }).Force(bg)
		_, _ = make(func(context.Context) (int, error) { return 1, errOops }).Force(bg)
		func() {
			defer func() { _ = recover() }()
			_, _ = make(func(context.Context) (int, error) { panic(errOops) }).Force(bg)
		}()
		var forced sync.WaitGroup
		ready := make(func(context.Context) (int, error) { return 1, nil })
		forced.Go(func() { _, _ = ready.Force(context.WithValue(bg, key{}, captured.New())) })
		forced.Wait()
		exits := make(func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
		_ = s.Go(func() { _, _ = exits.Force(bg) })
		schedtest.Settle()

		slow := lazy.New(func(context.Context) (int, error) { return gate.Await(bg) }, lazy.Restart)
		_ = s.Go(func() { _, _ = slow.Force(bg) })
		ctx, stop := cancel.New(bg)
		next, end := cancel.New(bg)
		defer end(nil)
		_ = s.Go(func() {
			_, _ = slow.Force(context.WithValue(ctx, key{}, captured.New()))
			_, _ = gate.Await(next) // keeps the task alive, which keeps only the context of its last wait
		})
		schedtest.Settle()
		stop(nil)
		schedtest.Settle()
		captured.Collected(t, 0)
		runtime.KeepAlive(ls)
	})
}

func TestAllocs(t *testing.T) {
	l := lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Restart)
	_, _ = l.Force(bg)
	ctx, stop := context.WithCancel(bg)
	defer stop()
	for name, limit := range map[string]struct {
		f   func()
		max float64
	}{
		"ready":              {func() { _, _ = l.Force(bg) }, 0},
		"ready, cancellable": {func() { _, _ = l.Force(ctx) }, 0},
		"value":              {func() { _, _, _ = l.Value() }, 0},
		"first": {func() {
			_, _ = lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Restart).Force(bg)
		}, 6},
	} {
		if got := testing.AllocsPerRun(100, limit.f); got > limit.max {
			t.Errorf("%s: %v allocations, limit %v", name, got, limit.max)
		}
	}
}

func BenchmarkFirst(b *testing.B) {
	f := func(context.Context) (int, error) { return 1, nil }
	b.Run("Braid", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = lazy.New(f, lazy.Restart).Force(bg)
		}
	})
	b.Run("nested", func(b *testing.B) {
		b.ReportAllocs()
		_, _ = lazy.New(func(ctx context.Context) (int, error) {
			for range b.N {
				_, _ = lazy.New(f, lazy.Restart).Force(ctx)
			}
			return 0, nil
		}, lazy.Restart).Force(bg)
	})
	b.Run("sync.OnceValues", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = sync.OnceValues(func() (int, error) { return f(bg) })()
		}
	})
}

// After an inner Force has returned, the goroutine still runs the outer function, so a Force of the outer value would wait for
// itself.
func TestACycleByGoroutineBehindAnInnerForce(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	inner := lazy.New(one, lazy.Record)
	var outer *lazy.Lazy[int]
	outer = lazy.New(func(context.Context) (int, error) {
		_, err := inner.Force(bg)
		require.NoError(t, err)
		return outer.Force(bg)
	}, lazy.Record)
	_, err := outer.Force(bg)
	require.ErrorIs(t, err, lazy.ErrRecursive)
}
