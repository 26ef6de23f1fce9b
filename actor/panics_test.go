package actor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/carrier"
	"github.com/braidgo/braid/internal/testrig/schedtest"
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

// An unheld scheduler does not wait for its actors, so a test fails where it would hang.
type unheld struct{ on suspend.Spawner }

func (u unheld) Go(f func()) error { return u.on.Go(f) }

// A panic of a function of an Op that an actor Awaits is a panic of the actor.
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

// So is one of a match, which a sender calls.
func TestAwaitMatchPanics(t *testing.T) {
	panics := 0
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { panics++ }})
	_ = s.Run(bg, func(context.Context) error {
		ref := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Await(self, self.RecvOp(func(int) bool { panic("oops") }), func(int, error) error { return nil })
		})
		suspend.Yield()
		require.NoError(t, ref.Send(1))
		if !endsSoon(ref) {
			t.Errorf("the actor has not ended, %d panics", panics)
		}
		return nil
	})
}

// An actor whose task exits has ended, and the mail that is left is dead.
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

// A panic of Dead loses no other dead letter.
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

// A panic of a function of OnEnd is the actor's error, and the others are called before the end is told.
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
				t.Errorf("the end is told (%v), and a function of OnEnd has not been called", err)
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

// A panic of the function of one Watch harms no other Watch.
func TestWatchPanics(t *testing.T) {
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	told := 0
	ctx, cancel := context.WithTimeout(bg, 2*time.Second)
	defer cancel()
	err := s.Run(ctx, func(context.Context) error {
		other := actor.Spawn(bg, unheld{s}, once(func(int) error { return nil }))
		w1 := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
			self.Watch(other, func(error) int { panic("oops") })
			return self.React(func(int) error { told++; return nil })
		})
		w2 := actor.Spawn(bg, unheld{s}, func(_ context.Context, self *actor.Self[int]) error {
			self.Watch(other, func(error) int { return 1 })
			return self.React(func(int) error { told++; return nil })
		})
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

// A message with which a function closes its inbox, and which it skips, is dead.
func TestCloseThenSkip(t *testing.T) {
	var dead []int
	in := actor.Open[int](bg, actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
	require.NoError(t, in.Ref().Send(1))
	require.NoError(t, in.Ref().Send(2))
	err := in.Handle(bg, func(m int) error { in.Close(); return actor.Skip })
	require.ErrorIs(t, err, actor.ErrEnded)
	require.ElementsMatch(t, []int{1, 2}, dead)
}

// A Goexit of a match harms its caller only.
func TestMatchGoexit(t *testing.T) {
	in := actor.Open[int](bg)
	require.NoError(t, in.Ref().Send(1))
	done := make(chan int)
	go func() {
		defer close(done)
		_, _ = suspend.Do(bg, in.RecvOp(func(int) bool { runtime.Goexit(); return false }))
	}()
	<-done
	sent := make(chan int)
	go func() { _ = in.Ref().Send(2); close(sent) }()
	select {
	case <-sent:
	case <-time.After(time.Second):
		t.Error("a Send does not return: the guard is locked")
	}
}

// A Goexit of Dead, and a panic of a function of ReplyTo, lose no other call.
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
