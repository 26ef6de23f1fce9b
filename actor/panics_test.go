package actor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// endsSoon reports whether ref ends within some turns of the scheduler.
func endsSoon(ref actor.Actor) bool {
	for range 100 {
		suspend.Yield()
		select {
		case <-ref.Done():
			return true
		default:
		}
	}
	return false
}

// An unheld scheduler does not wait for its actors, so that a test fails instead of hanging.
type unheld struct{ on suspend.Spawner }

func (u unheld) Go(f func()) error { return u.on.Go(f) }

// If a function of an awaited Op panics, the actor panics.
func TestAwaitPanics(t *testing.T) {
	for _, catch := range []bool{false, true} {
		panics, dead, caught := 0, 0, false
		s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { panics++ }})
		_ = s.Run(bg, func(context.Context) error {
			ref := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
				await := actor.Await(self, suspend.Map(suspend.After(0), func(time.Time, error) (int, error) { panic("oops") }),
					func(int, error) error { return nil })
				if catch {
					return actor.Catch(func() error { return await }, func(error) error { caught = true; return nil })
				}
				return await
			}, actor.Options[int]{Dead: func(int) { dead++ }})
			_ = ref.Send(1)
			ended := endsSoon(ref)
			ref.Kill(errOops)
			t.Logf("catch %v: ended %v, caught %v, %d panics, %d dead; after a Kill: ended %v", catch, ended, caught, panics, dead, endsSoon(ref))
			if !ended || caught != catch {
				t.Errorf("catch %v: ended %v, caught %v", catch, ended, caught)
			}
			return nil
		})
	}
}

// The same holds if a match panics. Only the actor calls it, whichever task sends.
func TestAwaitMatchPanics(t *testing.T) {
	panics := 0
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { panics++ }})
	_ = s.Run(bg, func(context.Context) error {
		ref := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Await(self, self.RecvOp(func(int) bool { panic("oops") }), func(int, error) error { return nil })
		}, actor.Options[int]{})
		suspend.Yield()
		require.NoError(t, ref.Send(1))
		if !endsSoon(ref) {
			t.Errorf("the actor has not ended, %d panics", panics)
		}
		var p *suspend.PanicError
		require.ErrorAs(t, ref.Wait(bg), &p)
		return nil
	})
}

// A panic in the cleanup of a failed life is another failure of this life. Restart and Catch handle it if they handle panics. The
// other cleanup functions are called, and the reason of the end names both failures. The task of the scheduler panics only if no
// function handles the panic.
func TestPanicAfterAFailure(t *testing.T) {
	for _, handled := range []bool{true, false} {
		for _, first := range []string{"error", "panic"} {
			var told []error
			cleaned, lives, panics := 0, 0, 0
			s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { panics++ }})
			body := func(_ context.Context, self *actor.Self[int]) error {
				if lives++; lives == 3 {
					return nil
				}
				self.OnEnd(func() { cleaned++ })
				self.OnEnd(func() { panic("cleanup") })
				self.OnEnd(func() { cleaned++ })
				self.OnEnd(func() { panic("cleanup") })
				if first == "panic" && handled {
					panic(errOops)
				}
				return errOops
			}
			_ = s.Run(bg, func(context.Context) error {
				ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{Panics: handled, OnRestart: func(err error) { told = append(told, err) }}, body), actor.Options[int]{})
				err := ref.Wait(bg)
				if !handled {
					var p *suspend.PanicError
					require.ErrorAs(t, err, &p)
					return nil
				}
				require.NoError(t, err)
				return nil
			})
			if handled {
				require.Equal(t, []int{4, 3, 0}, []int{cleaned, lives, panics})
				require.Len(t, told, 2)
				for _, err := range told {
					require.ErrorIs(t, err, errOops)
					require.ErrorContains(t, err, "actor: panic: cleanup, after: actor: panic: cleanup, after: ")
				}
			} else {
				require.Equal(t, []int{2, 1}, []int{cleaned, lives})
				require.Positive(t, panics)
			}
		}
	}
}

// A panic in the functions of a Policy is a failure that its own Restart does not handle. Otherwise the Policy could be called
// for ever.
func TestPolicyPanics(t *testing.T) {
	for name, policy := range map[string]actor.Policy{
		"OnRestart": {OnRestart: func(error) { panic("hook") }},
		"Backoff":   {Backoff: func(int) time.Duration { panic("hook") }},
	} {
		for _, handled := range []bool{true, false} {
			panics, lives := 0, 0
			s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { panics++ }})
			policy.Panics = handled
			_ = s.Run(bg, func(context.Context) error {
				inner := actor.Restart(policy, func(context.Context, *actor.Self[int]) error { lives++; return errOops })
				err := actor.Spawn(bg, s, inner, actor.Options[int]{}).Wait(bg)
				var p *suspend.PanicError
				require.ErrorAs(t, err, &p, name)
				require.Equal(t, handled, errors.Is(err, errOops), "%s: the failure before it is lost", name)

				outer := actor.Restart(actor.Policy{Max: 1, Panics: !handled}, inner)
				require.ErrorAs(t, actor.Spawn(bg, s, outer, actor.Options[int]{}).Wait(bg), &p, name)
				return nil
			})
			want := []int{2, 0} // the outer Restart does not handle the panic, although the inner one has recovered it
			if !handled {
				want = []int{3, 1} // the outer Restart handles panics
			}
			require.Equal(t, want, []int{lives, panics}, name)
		}
	}
}

// If the task of an actor calls runtime.Goexit, the actor has ended, and its remaining messages are dead letters.
func TestGoexitAnywhere(t *testing.T) {
	for name, body := range map[string]func(self *actor.Self[int]) error{
		"react": func(self *actor.Self[int]) error {
			return self.React(func(int) error { runtime.Goexit(); return nil })
		},
		"nested": func(self *actor.Self[int]) error {
			return self.React(func(int) error { return self.Handle(bg, func(int) error { runtime.Goexit(); return nil }) })
		},
		"await": func(self *actor.Self[int]) error {
			return actor.Await(self, self.RecvOp(nil), func(int, error) error { runtime.Goexit(); return nil })
		},
		"await map": func(self *actor.Self[int]) error {
			return actor.Await(self, suspend.Map(self.RecvOp(nil), func(int, error) (int, error) { runtime.Goexit(); return 0, nil }),
				func(int, error) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dead := 0
			s := fifo.New(fifo.Options{})
			_ = s.Run(bg, func(context.Context) error {
				ref := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error { return body(self) },
					actor.Options[int]{Dead: func(int) { dead++ }})
				for i := range 4 {
					_ = ref.Send(i)
				}
				if !endsSoon(ref) {
					t.Error("not ended")
				}
				return nil
			})
			want := 3
			if name == "nested" {
				want = 2
			}
			require.Equal(t, want, dead)
		})
	}
}

// If Dead panics, no other dead letter is lost.
func TestDeadPanics(t *testing.T) {
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	var dead []int
	require.NoError(t, s.Run(bg, func(context.Context) error {
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error { return nil },
			actor.Options[int]{Dead: func(m int) {
				dead = append(dead, m)
				if m == 1 {
					panic("oops")
				}
			}})
		for i := range 4 {
			require.NoError(t, ref.Send(i))
		}
		_ = ref.Wait(bg)
		return nil
	}))
	require.Equal(t, []int{0, 1, 2, 3}, dead)
}

// A panic of a function of OnEnd is the error of the actor. The other functions are called before the end is published.
func TestOnEndPanics(t *testing.T) {
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	require.NoError(t, s.Run(bg, func(context.Context) error {
		released := false
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			self.OnEnd(func() { released = true })
			self.OnEnd(func() { panic("oops") })
			return nil
		}, actor.Options[int]{OnEnd: func(err error) {
			if !released {
				t.Errorf("the end is published (%v), but a function of OnEnd has not been called", err)
			}
		}})
		var p *suspend.PanicError
		err := ref.Wait(bg)
		if !errors.As(err, &p) {
			t.Errorf("Wait: %v", err)
		}
		if !released {
			t.Error("not called at Wait")
		}
		return nil
	}))
}

// If the function of a Watch panics, the other Watches are not affected.
func TestWatchPanics(t *testing.T) {
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	told := 0
	ctx, cancel := context.WithTimeout(bg, 2*time.Second)
	defer cancel()
	err := s.Run(ctx, func(context.Context) error {
		other := actor.Spawn(bg, unheld{s}, once(func(int) error { return nil }), actor.Options[int]{})
		w1 := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
			self.Watch(other, func(error) int { panic("oops") })
			return self.React(func(int) error { told++; return nil })
		}, actor.Options[int]{})
		w2 := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
			self.Watch(other, func(error) int { return 1 })
			return self.React(func(int) error { told++; return nil })
		}, actor.Options[int]{})
		schedtest.Settle()
		other.Stop()
		_ = other.Wait(bg)
		schedtest.Settle()
		w1.Stop()
		w2.Stop()
		return nil
	})
	t.Log("Run", err, s.Stats())
	require.Equal(t, 1, told)
	require.NoError(t, err)
}

// A function closes its inbox while it handles a message, and then skips the message. The message is a dead letter.
func TestCloseThenSkip(t *testing.T) {
	var dead []int
	in := actor.Open[int](bg, actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
	require.NoError(t, in.Ref().Send(1))
	require.NoError(t, in.Ref().Send(2))
	err := in.Handle(bg, func(m int) error { in.Close(); return actor.Skip })
	require.ErrorIs(t, err, actor.ErrEnded)
	require.ElementsMatch(t, []int{1, 2}, dead)
}

// A match that panics or exits, such as a failed require, ends its Select. It must leave no guard locked: neither its inbox's,
// nor another inbox's, nor the guard of all transactions. Only the owner calls it, even if other tasks send, so no sender is
// affected.
func TestMatchThatEndsItsCaller(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("oops") }, "exit": runtime.Goexit} {
		for _, early := range []bool{true, false} { // whether the message arrives before the Select
			t.Run(fmt.Sprint(name, " ", early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var v stm.Var[int]
					calls := 0
					in, other := actor.Open[int](bg, actor.Options[int]{Cap: 2}), actor.Open[int](bg, actor.Options[int]{Cap: 1})
					match := func(int) bool { calls++; end(); return true }
					transaction := func(tx *stm.Tx) (int, error) { v.Get(tx); return 0, stm.Retry }
					if early {
						require.NoError(t, in.Ref().Send(1))
					}
					go func() {
						defer func() { _ = recover() }()
						_, _ = suspend.Do(bg, suspend.Choose(in.RecvOp(match), other.RecvOp(match), other.RecvOp(nil), stm.Op(transaction)))
					}()
					synctest.Wait()
					if !early {
						sent := in.Ref().SendOp(1) // a Select of a sender holds several guards
						_, err := suspend.Do(bg, suspend.Choose(sent, suspend.Map(actor.Open[int](bg, actor.Options[int]{}).RecvOp(nil), func(int, error) (v struct{}, err error) { return v, err })))
						require.NoError(t, err)
						synctest.Wait()
					}
					require.Equal(t, 1, calls)
					require.NoError(t, in.Ref().Send(2))
					require.NoError(t, other.Ref().Send(2))
					require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, 1); return nil }))
					for want := 1; want <= 2; want++ { // no message is lost
						m, err := in.Receive(bg)
						require.NoError(t, err)
						require.Equal(t, want, m)
					}
				})
			})
		}
	}
}

// A Handle whose function panics has received its message, even if the caller recovers the panic.
func TestHandleThatPanics(t *testing.T) {
	in := actor.Open[int](bg, actor.Options[int]{})
	require.NoError(t, in.Ref().Send(1))
	require.NoError(t, in.Ref().Send(2))
	schedtest.Panics(t, "oops", func() { _ = in.Handle(bg, func(int) error { panic("oops") }) })
	require.Equal(t, 1, in.Len())
	m, err := in.Receive(bg)
	require.NoError(t, err)
	require.Equal(t, 2, m)
}

// A Goexit in Dead, or a panic in a function of ReplyTo, prevents no other call.
func TestEndCallsAll(t *testing.T) {
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	dead, replies := 0, 0
	require.NoError(t, s.Run(bg, func(context.Context) error {
		ref := actor.Spawn(bg, s, func(context.Context, *actor.Self[*get]) error { return nil },
			actor.Options[*get]{Dead: func(*get) { dead++; runtime.Goexit() }})
		for range 3 {
			q := new(get)
			c, _ := carrier.Of(q)
			c.ReplyTo(func(any, error) { replies++; panic("oops") })
			require.NoError(t, ref.Send(q))
		}
		require.NoError(t, ref.Wait(bg))
		return nil
	}))
	require.Equal(t, 3, dead)
	require.Equal(t, 3, replies)
}
