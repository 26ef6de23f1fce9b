package suspend_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Every wait for a time uses the clock of its scheduler. With the clock of package time, a timeout in a simulation would take
// real time, or none at all.
func TestTimersAreTheSchedulers(t *testing.T) {
	bg := context.Background()
	for name, wait := range map[string]func(v *schedtest.Virtual) (time.Time, error){
		"Sleep": func(*schedtest.Virtual) (time.Time, error) {
			err := suspend.Sleep(bg, time.Hour)
			return suspend.Now(), err
		},
		"After": func(*schedtest.Virtual) (time.Time, error) { return suspend.Do(bg, suspend.After(time.Hour)) },
		"After in a Select": func(*schedtest.Virtual) (time.Time, error) {
			late, never := suspend.CaseOf(suspend.After(time.Hour)), suspend.CaseOf(suspend.After(2*time.Hour))
			won, err := suspend.Select(bg, never, late)
			if won != late {
				t.Errorf("won %v, %v", won, err)
			}
			return late.Value(), nil
		},
		"Then": func(v *schedtest.Virtual) (time.Time, error) {
			var p promise.Promise[time.Time]
			// In a callback, only the executor identifies the scheduler that runs it.
			_ = v.Execute(func() {
				suspend.Then(bg, suspend.After(time.Hour), v, func(at time.Time, err error) { _ = p.Resolve(at, err) })
			})
			return p.Await(bg)
		},
		"WithTimeout": func(*schedtest.Virtual) (time.Time, error) {
			ctx, end := cancel.WithTimeout(bg, time.Hour)
			defer end()
			if _, err := suspend.Do(ctx, suspend.Op[int]{}); err != context.DeadlineExceeded {
				t.Errorf("cancelled with %v", err)
			}
			return suspend.Now(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := schedtest.NewVirtual()
				began, real := v.Now(), time.Now()
				ended := false
				go v.Bind(func() {
					at, err := wait(v)
					if want := began.Add(time.Hour); err != nil || !at.Equal(want) {
						t.Errorf("at %v, %v; want %v", at, err, want)
					}
					ended = true
				})
				synctest.Wait()
				v.Advance(time.Hour - 1)
				if synctest.Wait(); ended {
					t.Error("too early")
				}
				v.Advance(1)
				if synctest.Wait(); !ended {
					t.Error("too late")
				}
				if !time.Now().Equal(real) {
					t.Error("waited by the clock of package time")
				}
				if v.Timers() != 0 {
					t.Errorf("%d timers are left", v.Timers())
				}
			})
		})
	}
}

// A time that has come is ready at once, also in a TrySelect.
func TestATimeThatHasCome(t *testing.T) {
	v := schedtest.NewVirtual()
	v.Bind(func() {
		now := v.Now()
		for _, op := range []suspend.Op[time.Time]{suspend.After(0), suspend.After(-1)} {
			c := suspend.CaseOf(op)
			if won, err := suspend.TrySelect(context.Background(), c); won != c || err != nil || !c.Value().Equal(now) {
				t.Errorf("won %v, %v", won, err)
			}
		}
		if won, _ := suspend.TrySelect(context.Background(), suspend.CaseOf(suspend.After(1))); won != nil {
			t.Error("too early")
		}
	})
}

// A timed wait leaves no timer behind, however it ends. A timer of an hour would keep the task's memory for an hour.
func TestNoTimerIsLeft(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context){
		"Sleep": func(ctx context.Context) { _ = suspend.Sleep(ctx, time.Hour) },
		"After": func(ctx context.Context) { _, _ = suspend.Do(ctx, suspend.After(time.Hour)) },
		"After, another wins": func(ctx context.Context) {
			quit := suspend.CaseOf(suspend.Done(ctx))
			if won, err := suspend.Select(context.Background(), suspend.CaseOf(suspend.After(time.Hour)), quit); won != quit {
				t.Errorf("won %v, %v", won, err)
			}
		},
		"a deadline": func(ctx context.Context) {
			_, end := cancel.WithTimeout(ctx, time.Hour)
			end()
			_, _ = cancel.WithTimeout(ctx, time.Hour)
			<-ctx.Done()
		},
		"Then": func(ctx context.Context) {
			var p promise.Promise[error]
			suspend.Then(ctx, suspend.After(time.Hour), suspend.Here().(suspend.Executor), func(_ time.Time, err error) { _ = p.Fill(err) })
			if err, _ := p.Await(context.Background()); err == nil {
				t.Error("not cancelled")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := schedtest.NewVirtual()
				ctx, end := cancel.New(context.Background())
				go v.Bind(func() { wait(ctx) })
				synctest.Wait()
				if v.Timers() != 1 {
					t.Errorf("%d timers, want 1", v.Timers())
				}
				end(nil)
				if synctest.Wait(); v.Timers() != 0 {
					t.Errorf("%d timers are left", v.Timers())
				}
			})
		})
	}
}

// A Then on an Executor without timers uses those of package time, and not those of the task that calls Then: when that task's
// loop is closed, it drops its timers, and the continuation would never be called.
func TestThenTakesNoTimersOfItsCaller(t *testing.T) {
	bg := context.Background()
	for name, op := range map[string]func() suspend.Op[time.Time]{
		"After": func() suspend.Op[time.Time] { return suspend.After(time.Hour) },
		"After beside a Preparer": func() suspend.Op[time.Time] {
			return suspend.Choose(suspend.After(time.Hour), suspend.OpOf[time.Time](new(idleMade)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := schedtest.NewVirtual()
				got := make(chan time.Time, 2)
				op := op()
				for range 2 {
					go v.Bind(func() {
						suspend.Then(bg, op, survivor{}, func(now time.Time, _ error) { got <- now })
					})
					synctest.Wait()
					if v.Advance(2 * time.Hour); v.Timers() != 0 {
						t.Error("the timer is one of the caller")
					}
					if synctest.Wait(); len(got) > 0 {
						t.Fatalf("called by the clock of the caller: %v", <-got)
					}
					time.Sleep(time.Hour)
					if synctest.Wait(); len(got) != 1 {
						t.Fatal("not called")
					}
					if called := <-got; !called.Equal(time.Now()) {
						t.Fatalf("called at %v instead of %v", called, time.Now())
					}
					if name == "Until" {
						break
					}
				}
			})
		})
	}
}

// An idleMade is an operation that is never ready.
type idleMade struct{ guard suspend.Guard }

func (m *idleMade) Guard() *suspend.Guard              { return &m.guard }
func (m *idleMade) Try() (time.Time, bool, error)      { return time.Time{}, false, nil }
func (m *idleMade) Enqueue(suspend.Resumer[time.Time]) {}
func (m *idleMade) Remove(suspend.Resumer[time.Time])  {}
func (m *idleMade) Anew() suspend.Source[time.Time]    { return m }
func (m *idleMade) Prepare()                           {}
func (m *idleMade) Drop()                              {}
func (m *idleMade) Settle()                            {}
