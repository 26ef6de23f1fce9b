package scope_test

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

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

func TestMain(m *testing.M) { schedtest.Main(m) }

// forever waits until ctx ends.
func forever(ctx context.Context) error {
	_, err := new(promise.Promise[int]).Await(ctx)
	return err
}

func TestRunWaitsForAllChildrenOnEveryScheduler(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		schedtest.Run(t, on, func() {
			var ended atomic.Int32
			err := scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
				for range 10 {
					s.Go(on, func(ctx context.Context) error {
						for range 10 {
							_ = s.On(on).Go(func() {
								suspend.Yield()
								ended.Add(1)
							})
						}
						suspend.Yield()
						ended.Add(1)
						return nil
					})
				}
				return nil
			})
			if err != nil || ended.Load() != 110 {
				t.Errorf("Run = %v with %d children ended", err, ended.Load())
			}
		})
	})
}

func TestOneScopeHasChildrenOnAllSchedulers(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var ended atomic.Int32
		started := make(chan struct{}, 50)
		err := scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
			for range cap(started) {
				s.Go(next(), func(ctx context.Context) error {
					started <- struct{}{}
					err := forever(ctx)
					if !errors.Is(err, errOops) || context.Cause(ctx) != errOops {
						t.Errorf("%v, cause %v", err, context.Cause(ctx))
					}
					ended.Add(1)
					return err
				})
			}
			for range cap(started) {
				<-started
			}
			s.Go(next(), func(context.Context) error { return errOops })
			return nil
		})
		if err != errOops || ended.Load() != 50 {
			t.Errorf("Run = %v with %d ended", err, ended.Load())
		}
	})
}

func TestTheFirstErrorIsReturned(t *testing.T) {
	second := errors.New("second")
	for name, test := range map[string]struct {
		body func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error
		want error
	}{
		"none": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(context.Context) error { return nil })
			return nil
		}, nil},
		"body": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(ctx context.Context) error { _ = forever(ctx); return second })
			return errOops
		}, errOops},
		"child": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(ctx context.Context) error { return errOops })
			return forever(ctx)
		}, errOops},
		"Cancel": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(ctx context.Context) error { s.Cancel(errOops); s.Cancel(second); return second })
			return forever(ctx)
		}, errOops},
		"enough": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(ctx context.Context) error { s.Cancel(nil); return nil })
			return forever(ctx)
		}, nil},
		"enough, wrapped": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Cancel(nil)
			return fmt.Errorf("reading: %w", forever(ctx))
		}, nil},
		"enough, and yet it failed": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(ctx context.Context) error { _ = forever(ctx); return errOops })
			s.Go(on, func(ctx context.Context) error { return forever(ctx) })
			s.Cancel(nil)
			return nil
		}, errOops},
		"failed, and then enough": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Cancel(errOops)
			s.Cancel(nil)
			return nil
		}, errOops},
		"exit": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			s.Go(on, func(ctx context.Context) error { runtime.Goexit(); return nil })
			return forever(ctx)
		}, suspend.ErrAbandoned},
		"exit in a spawned function": {func(ctx context.Context, s *scope.Scope, on suspend.Spawner) error {
			_ = s.On(on).Go(runtime.Goexit)
			return forever(ctx)
		}, suspend.ErrAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
				err := scope.Run(bg, func(ctx context.Context, s *scope.Scope) error { return test.body(ctx, s, on) })
				if err != test.want && (test.want != suspend.ErrAbandoned || !errors.Is(err, test.want)) {
					t.Errorf("Run = %v, want %v", err, test.want)
				}
			})
		})
	}
}

func TestADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(bg)
	stop := func(start bool, err error) error {
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			cancel(errOops)
			s.Cancel(nil)
			if start {
				s.Go(nil, func(context.Context) error { t.Error("it ran"); return nil })
			}
			return err
		})
	}
	if err := stop(false, nil); err != nil {
		t.Errorf("Run = %v, although no child failed", err)
	}
	err := scope.Run(ctx, func(context.Context, *scope.Scope) error { t.Error("body runs"); return nil })
	if !errors.Is(err, errOops) || !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	ctx, cancel = context.WithCancelCause(bg)
	defer cancel(nil)
	if err := stop(false, context.Canceled); err != context.Canceled {
		t.Errorf("Run = %v, though body was stopped by its parent", err)
	}
	ctx, cancel = context.WithCancelCause(bg)
	defer cancel(nil)
	if err := stop(true, nil); !errors.Is(err, errOops) || !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, though a child never ran", err)
	}
}

// Run waits for the children even if the context has ended.
func TestTheEndIsNotCancellable(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		ctx, cancel := context.WithCancel(bg)
		var gate promise.Promise[int]
		ended, childEnded := false, false
		_ = on.Go(func() {
			_ = scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
				s.Go(on, func(context.Context) error {
					_, _ = gate.Await(bg)
					childEnded = true
					return nil
				})
				return nil
			})
			ended = true
			if !childEnded {
				t.Error("Run has returned before its child")
			}
		})
		suspend.Yield()
		cancel()
		for range 10 {
			suspend.Yield()
		}
		if ended {
			t.Error("Run has returned")
		}
		_ = gate.Fill(1)
		for !ended {
			suspend.Yield()
		}
	})
}

func TestReleases(t *testing.T) {
	for name, end := range map[string]func() error{
		"return": func() error { return nil },
		"error":  func() error { return errOops },
		"panic":  func() error { panic(errOops) },
		"exit":   func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
				order := ""
				schedtest.Run(t, on, func() {
					var lock mutex.Mutex
					defer func() {
						v := recover()
						if (v != nil) != (name == "panic") || v != nil && v != errOops {
							t.Errorf("panic %v", v)
						}
						if order != "child c C b a" {
							t.Errorf("order %q", order)
						}
					}()
					_ = scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
						s.OnRelease(func() { order += " a" })
						s.OnRelease(func() {
							lock.Lock() // suspends
							order += " b"
							if ctx.Err() == nil {
								t.Error("not done")
							}
						})
						lock.Lock()
						s.Go(on, func(context.Context) error {
							suspend.Yield()
							order += "child"
							s.OnRelease(func() {
								order += " c"
								s.OnRelease(func() { order += " C" })
								_ = on.Go(func() { suspend.Yield(); lock.Unlock() })
							})
							return nil
						})
						return end()
					})
				})
			})
		})
	}
}

func TestAPanicInARelease(t *testing.T) {
	order := ""
	var s *scope.Scope
	func() {
		defer func() {
			if v := recover(); v != errOops {
				t.Errorf("panic %v", v)
			}
		}()
		_ = scope.Run(bg, func(_ context.Context, it *scope.Scope) error {
			s = it
			s.OnRelease(func() { order += "a" })
			s.OnRelease(func() { panic(errOops) })
			s.OnRelease(func() { order += "b" })
			return nil
		})
	}()
	if order != "ba" {
		t.Errorf("order %q", order)
	}
	defer func() {
		if v := recover(); v != "scope: OnRelease after the end of the scope" {
			t.Errorf("panic %v", v)
		}
	}()
	s.OnRelease(func() {})
}

func TestAnEndedScopeRefuses(t *testing.T) {
	var s *scope.Scope
	var ctx context.Context
	refuses := func() {
		t.Helper()
		schedtest.Panics(t, "scope: Go after the end of the scope", func() { s.Go(nil, func(context.Context) error { return nil }) })
		if _, err := scope.Start(s, nil, func(context.Context) (int, error) { return 1, nil }).Await(bg); !errors.Is(err, suspend.ErrEnded) || !errors.Is(err, suspend.ErrClosed) || err.Error() != "scope: ended" {
			t.Errorf("Start = %v", err)
		}
		if err := s.On(nil).Go(func() {}); !errors.Is(err, suspend.ErrEnded) {
			t.Errorf("On.Go = %v", err)
		}
		if _, err := s.On(nil).(sched.Holder).Hold(); !errors.Is(err, suspend.ErrEnded) {
			t.Errorf("Hold = %v", err)
		}
		if err := suspend.Err(ctx); !errors.Is(err, suspend.ErrEnded) || !errors.Is(err, context.Canceled) {
			t.Errorf("the context: %v", err)
		}
	}
	_ = scope.Run(bg, func(c context.Context, it *scope.Scope) error {
		ctx, s = c, it
		s.OnRelease(refuses)
		return nil
	})
	refuses()
	s.Cancel(nil)
	s.Cancel(errOops)
	refuses()
}

type spawnerFunc func(func()) error

func (f spawnerFunc) Go(g func()) error { return f(g) }

// A child that a Spawner refuses is a failure of the scope, because programs drop the error of Go, as with errgroup. Otherwise
// Run would return nil although the child never ran.
func TestASpawnerThatRefuses(t *testing.T) {
	p := workstealing.New(workstealing.Options{Workers: 1})
	_ = p.Close()
	errFull := errors.New("full")
	full := spawnerFunc(func(func()) error { return errFull })
	for name, c := range map[string]struct {
		start func(ctx context.Context, of scope.Parent)
		want  error
	}{
		"closed":  {func(_ context.Context, of scope.Parent) { startIn(of, p) }, suspend.ErrClosed},
		"full":    {func(_ context.Context, of scope.Parent) { startIn(of, full) }, errFull},
		"a Limit": {func(_ context.Context, of scope.Parent) { startIn(of, scope.Limit(1, full)) }, errFull},
		"a scope that has ended": {func(ctx context.Context, of scope.Parent) {
			var ended suspend.Spawner
			_ = scope.Run(ctx, func(_ context.Context, s *scope.Scope) error { ended = s.On(nil); return nil })
			startIn(of, ended)
		}, suspend.ErrEnded},
		"in a child": {func(_ context.Context, of scope.Parent) {
			scope.Start(of, nil, func(context.Context) (int, error) { startIn(of, p); return 0, nil })
		}, suspend.ErrClosed},
		"a Child": {func(_ context.Context, of scope.Parent) {
			_, err := scope.Start(of, p, func(context.Context) (int, error) { return 1, nil }).Await(bg)
			require.ErrorIs(t, err, suspend.ErrClosed)
		}, suspend.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			stopped := false
			err := scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
				s.Go(nil, func(ctx context.Context) error { defer func() { stopped = true }(); return forever(ctx) })
				c.start(ctx, s)
				return nil
			})
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "scope: a child was refused: ")
			require.True(t, stopped, "the failure cancels the others")

			g := scope.Open(bg, scope.FirstError)
			c.start(bg, g)
			require.ErrorIs(t, g.Shutdown(bg), c.want)

			var others atomic.Int32
			g = scope.Open(bg, scope.Collect)
			for range 2 {
				c.start(bg, g)
				g.Go(nil, func(context.Context) error { others.Add(1); return nil }) // g is not cancelled
			}
			all, ok := g.Shutdown(bg).(interface{ Unwrap() []error })
			require.True(t, ok)
			require.Len(t, all.Unwrap(), 2)
			require.EqualValues(t, 2, others.Load())
		})
	}
}

// startIn starts a child that would fail the test.
func startIn(of scope.Parent, on suspend.Spawner) {
	f := func(context.Context) error { panic("it ran") }
	switch of := of.(type) {
	case *scope.Scope:
		of.Go(on, f)
	case *scope.Group:
		of.Go(on, f)
	}
}

// A refusal by the Spawner of On is returned to its caller, and is not a failure of the scope.
func TestOnReturnsTheRefusal(t *testing.T) {
	require.NoError(t, scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
		require.ErrorIs(t, s.On(spawnerFunc(func(func()) error { return suspend.ErrClosed })).Go(func() {}), suspend.ErrClosed)
		return ctx.Err()
	}))
}

// A Spawner that panics leaves no member behind.
func TestASpawnerThatPanics(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	on := spawnerFunc(func(func()) error { panic(errOops) })
	require.NoError(t, scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
		for _, start := range []func(){func() { s.Go(on, forever) }, func() { _ = s.On(on).Go(func() {}) }} {
			func() {
				defer func() { require.Equal(t, errOops, recover()) }()
				start()
			}()
		}
		return nil
	}))
}

func TestAPanicOfAChildThatItsSchedulerTakes(t *testing.T) {
	var taken atomic.Value
	p := workstealing.New(workstealing.Options{Workers: 2, OnPanic: func(v any, _ []byte) { taken.Store(v) }})
	err := scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
		s.Go(p, func(context.Context) error { panic(errOops) })
		return forever(ctx)
	})
	_ = p.Close()
	if !errors.Is(err, suspend.ErrAbandoned) || !errors.Is(err, errOops) || taken.Load() != errOops {
		t.Errorf("Run = %v, OnPanic %v", err, taken.Load())
	}
}

// One scope has a child in every kind of wait. After a Cancel all return, and nothing is left of them.
func TestEveryWaitEndsWithTheScope(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var lock mutex.Mutex
		lock.Lock()
		full, empty := mvar.NewFull(0), mvar.New[int]()
		var never promise.Promise[int]
		waits := map[string]func(ctx context.Context) error{
			"mutex": lock.LockContext,
			"put":   func(ctx context.Context) error { return full.Put(ctx, 1) },
			"take":  func(ctx context.Context) error { _, err := empty.Take(ctx); return err },
			"read":  func(ctx context.Context) error { _, err := empty.Read(ctx); return err },
			"await": func(ctx context.Context) error { _, err := never.Await(ctx); return err },
			"sleep": func(ctx context.Context) error { return suspend.Sleep(ctx, time.Hour) },
			"scope": func(ctx context.Context) error {
				return scope.Run(ctx, func(_ context.Context, s *scope.Scope) error { s.Go(next(), forever); return nil })
			},
			"map": func(ctx context.Context) error {
				_, err := scope.Map(ctx, next(), make([]int, 3), func(ctx context.Context, _ int) (int, error) { return 0, forever(ctx) })
				return err
			},
			"first": func(ctx context.Context) error {
				f := func(ctx context.Context) (int, error) { return 0, forever(ctx) }
				_, err := scope.First(ctx, next(), f, f)
				return err
			},
			"select": func(ctx context.Context) error {
				_, err := suspend.Select(ctx, suspend.CaseOf(lock.LockOp()), suspend.CaseOf(full.PutOp(1)), suspend.CaseOf(empty.TakeOp()),
					suspend.CaseOf(never.AwaitOp()), suspend.CaseOf(suspend.After(time.Hour)), suspend.CaseOf(suspend.Done(ctx)))
				return err
			},
			"then": func(ctx context.Context) error {
				var p promise.Promise[int]
				suspend.Then(ctx, never.AwaitOp(), executor(nil), func(_ int, err error) { _ = p.Fail(err) })
				_, err := p.Await(bg)
				return err
			},
			"std": func(ctx context.Context) error {
				ctx, stop := context.WithTimeout(ctx, time.Hour)
				defer stop()
				return forever(ctx)
			},
		}
		var mu sync.Mutex // protects next
		unlocked := next
		next = func() suspend.Spawner { mu.Lock(); defer mu.Unlock(); return unlocked() }
		const each = 5
		var ended atomic.Int32
		var kept schedtest.Objects
		err := scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
			for range each {
				for name, wait := range waits {
					captured := kept.New()
					s.Go(next(), func(ctx context.Context) error {
						err := wait(ctx)
						// The Select has a case that is ready once ctx has ended.
						if !errors.Is(err, errOops) && (name != "select" || err != nil) {
							t.Errorf("%s: %v", name, err)
						}
						runtime.KeepAlive(captured)
						ended.Add(1)
						return err
					})
				}
			}
			schedtest.Quiet(t) // waits until all children wait
			return errOops
		})
		if want := each * int32(len(waits)); err != errOops || ended.Load() != want {
			t.Errorf("Run = %v, %d of %d ended", err, ended.Load(), want)
		}
		lock.Unlock()
		if !lock.TryLock() || !empty.TryPut(1) {
			t.Error("a waiter is left")
		}
		if _, ok := full.TryTake(); !ok || !full.TryPut(1) {
			t.Error("a waiter is left in put")
		}
		kept.Collected(t, 0)
	})
}

// executor runs callbacks on goroutines.
type executor func()

func (executor) Execute(f func()) error { go f(); return nil }

// Goroutines outside the scope start children while the scope is ending and its context ends. Each child runs before the end, or
// Run returns the reason why it did not run, or the Go panics.
func TestGoRacesWithTheEnd(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		outcomes := map[string]int{}
		covered := func() bool { return len(outcomes) == 3 }
		for round := 0; schedtest.More(round, 2000, covered); round++ {
			var s *scope.Scope
			var accepted, ran, running, late atomic.Int64
			on, ready := next(), make(chan struct{})
			parent, stop := context.WithCancel(bg)
			var strangers sync.WaitGroup
			for range 2 {
				strangers.Go(func() {
					<-ready
					for range 20 {
						if !survives(func() {
							s.Go(on, func(context.Context) error {
								running.Add(1)
								suspend.Yield()
								ran.Add(1)
								running.Add(-1)
								return nil
							})
						}) {
							late.Add(1)
							return
						}
						accepted.Add(1)
					}
				})
			}
			err := scope.Run(parent, func(_ context.Context, it *scope.Scope) error {
				s = it
				close(ready)
				if round%2 == 0 {
					runtime.Gosched()
				}
				if round%3 == 0 {
					stop()
				}
				return nil
			})
			if running.Load() != 0 {
				t.Fatalf("%d running", running.Load())
			}
			strangers.Wait()
			stop()
			if never := accepted.Load() - ran.Load(); (never > 0) != errors.Is(err, context.Canceled) || never == 0 && err != nil {
				t.Fatalf("%d children have not run, and Run = %v", never, err)
			}
			for outcome, n := range map[string]int64{"ran": ran.Load(), "did not run": accepted.Load() - ran.Load(), "came late": late.Load()} {
				if n > 0 {
					outcomes[outcome]++
				}
			}
		}
		require.True(t, covered(), outcomes)
	})
}

// survives calls f, and reports whether it returned. It returns false if f panicked because the scope has ended.
func survives(f func()) (yes bool) {
	defer func() {
		if v := recover(); v != nil && v != "scope: Go after the end of the scope" {
			panic(v)
		}
	}()
	f()
	return true
}

// Children fail, cancel and end at random. When Run returns, every child has run and ended, unless the scope was cancelled, every
// OnRelease function was called, and the error is one of those that occurred.
func TestStressWithRandomFailures(t *testing.T) {
	rounds := 600
	if testing.Short() || schedtest.Race {
		rounds = 150
	}
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var mu sync.Mutex
		spawner := func() suspend.Spawner { mu.Lock(); defer mu.Unlock(); return next() }
		outcomes := map[string]int{}
		covered := func() bool { return len(outcomes) == 5 }
		for round := 0; schedtest.More(round, rounds, covered); round++ {
			var asked, begun, ended, registered, released, failures atomic.Int64
			parent, stop := context.WithCancelCause(bg)
			var lock mutex.Mutex
			var work func(s *scope.Scope, seed uint64, depth int) func(ctx context.Context) error
			work = func(s *scope.Scope, seed uint64, depth int) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					begun.Add(1)
					defer ended.Add(1)
					rng := rand.New(rand.NewPCG(uint64(round), seed))
					for range rng.IntN(4) {
						if depth == 0 {
							break
						}
						s.Go(spawner(), work(s, rng.Uint64(), depth-1))
						asked.Add(1)
					}
					if rng.IntN(3) == 0 {
						s.OnRelease(func() { released.Add(1) })
						registered.Add(1)
					}
					suspend.Yield()
					if err := lock.LockContext(ctx); err == nil {
						suspend.Yield()
						lock.Unlock()
					}
					switch rng.IntN(200) {
					case 0, 1, 2:
						failures.Add(1)
						return errOops
					case 3, 4, 5:
						s.Cancel(nil)
					case 6:
						stop(errOops)
					case 7:
						if depth < 5 { // not on the goroutine of the test
							failures.Add(1)
							runtime.Goexit()
						}
					case 8, 9:
						return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error { s.Go(spawner(), forever); return nil })
					case 10:
						failures.Add(1)
						s.Cancel(errOops)
					}
					return suspend.Err(ctx)
				}
			}
			asked.Store(1)
			var within context.Context
			err := scope.Run(parent, func(ctx context.Context, s *scope.Scope) error {
				within = ctx
				go func() { // otherwise only the endless children might be left
					schedtest.Yield(round % 20 * 200)
					s.Cancel(nil)
				}()
				return work(s, 1, 5)(ctx)
			})
			stop(nil)
			never := asked.Load() - begun.Load()
			if begun.Load() != ended.Load() || never > 0 && errors.Is(context.Cause(within), suspend.ErrEnded) || registered.Load() != released.Load() {
				t.Fatalf("%d asked, %d begun, %d ended; %d registered, %d released", asked.Load(), begun.Load(), ended.Load(), registered.Load(), released.Load())
			}
			switch {
			case err == nil:
				outcomes["well"]++
			case errors.Is(err, suspend.ErrAbandoned):
				outcomes["abandoned"]++
			case err == errOops:
				outcomes["failed"]++
			case errors.Is(err, errOops) && errors.Is(err, context.Canceled):
				outcomes["parent cancelled"]++
			default:
				t.Errorf("Run = %v", err)
			}
			if (err == errOops || errors.Is(err, suspend.ErrAbandoned)) && failures.Load() == 0 {
				t.Errorf("Run = %v, but no child failed", err)
			}
			if never > 0 {
				outcomes["refused"]++
			}
		}
		t.Log(outcomes)
		for _, o := range []string{"well", "abandoned", "failed", "parent cancelled", "refused"} {
			if outcomes[o] == 0 {
				t.Errorf("not covered: %s", o)
			}
		}
	})
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		on := fifo.New(fifo.Options{})
		err := on.Run(bg, func(context.Context) error {
			var s *scope.Scope
			var sctx context.Context
			var got error
			ended := false
			var waiting []*promise.Promise[int] // one for each child; the first belongs to the body
			child := func() func(context.Context) error {
				p := promise.New[int]()
				waiting = append(waiting, p)
				return func(context.Context) error { _, err := p.Await(bg); return err }
			}
			parent, stop := context.WithCancel(bg)
			var want error
			cancelled, enough := false, false
			body := child()
			_ = on.Go(func() {
				got = scope.Run(parent, func(ctx context.Context, it *scope.Scope) error {
					sctx, s = ctx, it
					return body(ctx)
				})
				ended = true
			})
			settle := func() {
				for range 6 {
					suspend.Yield()
				}
			}
			settle()
			end := func(rt *rapid.T, err error) {
				if len(waiting) == 0 {
					return
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(rt, "i")
				_ = waiting[i].Resolve(0, err)
				waiting = slices.Delete(waiting, i, i+1)
				if err != nil && want == nil && !(enough && err == context.Canceled) {
					want = err
				}
				cancelled = cancelled || err != nil
				settle()
			}
			rt.Repeat(map[string]func(*rapid.T){
				"go": func(rt *rapid.T) {
					n, f := len(waiting), child()
					if survives(func() { s.Go(on, f) }) == (n == 0) {
						rt.Fatalf("Go with %d members", n)
					}
					if n == 0 || cancelled {
						waiting = waiting[:n]
					}
					if n > 0 && cancelled && want == nil && !enough {
						want = suspend.Err(sctx)
					}
				},
				"return":     func(rt *rapid.T) { end(rt, nil) },
				"fail":       func(rt *rapid.T) { end(rt, errOops) },
				"be stopped": func(rt *rapid.T) { end(rt, context.Canceled) },
				"enough": func(rt *rapid.T) {
					if len(waiting) > 0 {
						s.Cancel(nil)
						enough = enough || !cancelled
						cancelled = true
					}
				},
				"cancel": func(rt *rapid.T) {
					if len(waiting) > 0 {
						s.Cancel(errOops)
						cancelled = true
						if want == nil {
							want = errOops
						}
					}
				},
				"parent": func(rt *rapid.T) {
					if rapid.Bool().Draw(rt, "rarely") {
						stop()
						cancelled = true
					}
				},
				"": func(rt *rapid.T) {
					if ended != (len(waiting) == 0) {
						rt.Fatalf("ended %v with %d members", ended, len(waiting))
					}
					if ended && got != want {
						rt.Fatalf("Run = %v, want %v", got, want)
					}
					if !ended && (sctx.Err() != nil) != cancelled {
						rt.Fatalf("Err %v, want cancelled %v", sctx.Err(), cancelled)
					}
				},
			})
			for _, p := range waiting {
				_ = p.Fill(0)
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func TestMap(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		schedtest.Run(t, on, func() {
			in := make([]int, 100)
			for i := range in {
				in[i] = i
			}
			out, err := scope.Map(bg, on, in, func(_ context.Context, n int) (string, error) {
				for range n % 7 {
					suspend.Yield()
				}
				return fmt.Sprint(n), nil
			})
			if err != nil || len(out) != 100 || out[42] != "42" {
				t.Errorf("Map = %v, %v", out, err)
			}
			out, err = scope.Map(bg, on, in, func(ctx context.Context, n int) (string, error) {
				if n == 42 {
					return "", errOops
				}
				return "", forever(ctx)
			})
			if err != errOops || out != nil {
				t.Errorf("Map = %v, %v", out, err)
			}
		})
	})
	if out, err := scope.Map(bg, suspend.Goroutines, []int(nil), func(context.Context, int) (int, error) { return 0, nil }); len(out) != 0 || err != nil {
		t.Errorf("Map of nothing = %v, %v", out, err)
	}
	ctx, cancel := context.WithCancel(bg)
	_, err := scope.Map(ctx, suspend.Goroutines, []int{1, 2}, func(ctx context.Context, n int) (int, error) {
		cancel()
		return 0, forever(ctx)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Map = %v", err)
	}
}

func TestFirst(t *testing.T) {
	type call = func(context.Context) (int, error)
	one := func(context.Context) (int, error) { return 1, nil }
	fail := func(context.Context) (int, error) { return 0, errOops }
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		schedtest.Run(t, on, func() {
			var stopped atomic.Int32
			wait := func(ctx context.Context) (int, error) {
				err := forever(ctx)
				stopped.Add(1)
				return 0, err
			}
			if v, err := scope.First(bg, on, wait, fail, wait, one, wait); v != 1 || err != nil {
				t.Errorf("First = %d, %v", v, err)
			}
			other := errors.New("other")
			_, err := scope.First(bg, on, fail, call(func(context.Context) (int, error) { return 0, other }))
			if !errors.Is(err, errOops) || !errors.Is(err, other) {
				t.Errorf("First = %v", err)
			}
			late := func(ctx context.Context) (int, error) { _ = forever(ctx); return 2, nil }
			if v, err := scope.First(bg, on, one, late); err != nil || v != 1 {
				t.Errorf("First = %d, %v", v, err)
			}
			_, err = scope.First(bg, on, wait, call(func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }))
			if !errors.Is(err, suspend.ErrAbandoned) {
				t.Errorf("First = %v", err)
			}
			ctx, cancel := context.WithCancel(bg)
			_, err = scope.First(ctx, on, wait, call(func(context.Context) (int, error) { cancel(); return 0, errOops }))
			if !errors.Is(err, context.Canceled) || !errors.Is(err, errOops) {
				t.Errorf("First = %v", err)
			}
			if _, err := scope.First(ctx, on, one); !errors.Is(err, context.Canceled) {
				t.Errorf("First = %v", err)
			}
		})
	})
	defer func() {
		if v := recover(); v != "scope: First without functions" {
			t.Errorf("panic %v", v)
		}
	}()
	_, _ = scope.First[int](bg, suspend.Goroutines)
}

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error { s.Go(suspend.Goroutines, forever); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestNothingIsRetainedByTheParent(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var kept schedtest.Objects
	for range 10 {
		_ = scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			captured := kept.New()
			s.OnRelease(func() { runtime.KeepAlive(captured) })
			s.Go(suspend.Goroutines, func(context.Context) error { runtime.KeepAlive(captured); return nil })
			return nil
		})
	}
	kept.Collected(t, 1)
}

func TestAllocs(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
			f := func(context.Context) error { return nil }
			got := testing.AllocsPerRun(100, func() {
				s.Go(on, f)
				suspend.Yield()
			})
			if got > 2 { // one of them belongs to the scheduler
				t.Errorf("%v allocations for a child", got)
			}
			got = testing.AllocsPerRun(100, func() {
				c := scope.Start(s, on, func(context.Context) (int, error) { return 1, nil })
				_, _ = c.Await(bg)
			})
			if got > 4 { // also the Child and its function
				t.Errorf("%v allocations for a child with a handle", got)
			}
			return nil
		})
	})
}

func BenchmarkChild(b *testing.B) {
	b.Run("Braid", func(b *testing.B) {
		b.ReportAllocs()
		s := fifo.New(fifo.Options{})
		_ = s.Run(bg, func(ctx context.Context) error {
			return scope.Run(ctx, func(_ context.Context, sc *scope.Scope) error {
				for i := range b.N {
					sc.Go(s, func(context.Context) error { return nil })
					if i%64 == 0 {
						suspend.Yield()
					}
				}
				return nil
			})
		})
	})
	b.Run("errgroup", func(b *testing.B) {
		b.ReportAllocs()
		g, _ := errgroup.WithContext(bg)
		for i := range b.N {
			g.Go(func() error { return nil })
			if i%64 == 0 {
				runtime.Gosched()
			}
		}
		_ = g.Wait()
	})
}

// A function that is called at the end of the scope's context may panic. The scope ends anyway, and calls its hooks.
func TestEndsThoughTheCancellationPanics(t *testing.T) {
	released := false
	func() {
		defer func() {
			if v := recover(); v != "rude" {
				t.Errorf("panic %v", v)
			}
		}()
		_ = scope.Run(context.Background(), func(ctx context.Context, s *scope.Scope) error {
			s.OnRelease(func() { released = true })
			ctx.(interface {
				AfterFunc(func()) func() bool
			}).AfterFunc(func() { panic("rude") })
			return errors.New("and so it is cancelled")
		})
	}()
	if !released {
		t.Error("a hook was not called")
	}
}

func TestRunWhereSuspendingIsForbidden(t *testing.T) {
	defer func() {
		if v := recover(); v != "suspend: suspending is forbidden here (in a callback, or under Bind(nil))" {
			t.Errorf("panic %v", v)
		}
	}()
	suspend.Bind(nil, func() {
		_ = scope.Run(context.Background(), func(context.Context, *scope.Scope) error { t.Error("ran"); return nil })
	})
}
