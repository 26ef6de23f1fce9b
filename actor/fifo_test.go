package actor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// These rows run on a fifo, where the order is known, and on a fifo in virtual time.
var (
	fifoRows = []fifoRow{
		{"An Ask of an actor that has ended on the same goroutine is not an Ask of oneself", func(t *testing.T, s *fifo.Scheduler) {
			for range 10 {
				ended := actor.Spawn(bg, s, func(context.Context, *actor.Self[*get]) error { return nil }, actor.Options[*get]{})
				require.NoError(t, ended.Wait(bg))
				asks := actor.Spawn(bg, s, func(ctx context.Context, _ *actor.Self[*get]) error {
					_, err := actor.Ask(ctx, ended, &get{})
					require.ErrorIs(t, err, actor.ErrEnded)
					return nil
				}, actor.Options[*get]{})
				require.NoError(t, asks.Wait(bg))
			}
		}},
		{"A match that panics on a sender harms its owner only", func(t *testing.T, s *fifo.Scheduler) {
			in := actor.Open[int](bg, actor.Options[int]{})
			_ = s.Go(func() { require.NoError(t, in.Ref().Send(1)) })
			schedtest.Panics(t, "oops", func() { _, _ = suspend.Do(bg, in.RecvOp(func(int) bool { panicking(); return true })) })
			require.Equal(t, 1, in.Len())
			in.Close()
		}},
		{"A scheduler with Hold is released when the actor has ended, and no earlier", func(t *testing.T, s *fifo.Scheduler) {
			h := &holding{Spawner: s}
			dead := 0
			ref := actor.Spawn(bg, h, once(func(int) error { return actor.Skip }), actor.Options[int]{Dead: func(int) { dead++; require.EqualValues(t, 1, h.held.Load()) }})
			_ = ref.Send(1)
			schedtest.Settle()
			require.EqualValues(t, 1, h.held.Load())
			ref.Stop()
			require.NoError(t, ref.Wait(bg))
			schedtest.Settle()
			require.Zero(t, h.held.Load())
			require.Equal(t, 1, dead)
			h.refuse = true
			require.Equal(t, errOops, actor.Spawn(bg, h, func(context.Context, *actor.Self[int]) error { return nil }, actor.Options[int]{}).Wait(bg))
		}},
		{"A failure that came through many Links says which actor has failed, and why", func(t *testing.T, s *fifo.Scheduler) {
			const n = 200
			refs := make([]actor.Ref[int], n)
			for i := range refs {
				refs[i] = actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
					if i > 0 {
						self.Link(refs[i-1])
					}
					return lasting(ctx, self)
				}, actor.Options[int]{Name: fmt.Sprint(i)})
			}
			schedtest.Settle()
			refs[0].Kill(errOops)
			for i, r := range refs[1:] {
				var exit *actor.ExitError
				require.ErrorAs(t, r.Wait(bg), &exit)
				require.Equal(t, &actor.ExitError{Name: "0", Err: errOops}, exit, "actor %d", i+1)
			}
		}},
		{"A Restart does not handle a Goexit", func(t *testing.T, s *fifo.Scheduler) {
			lives := 0
			ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{Panics: true}, func(_ context.Context, self *actor.Self[int]) error {
				lives++
				return self.React(func(int) error { runtime.Goexit(); return nil })
			}), actor.Options[int]{})
			require.NoError(t, ref.Send(1))
			require.ErrorIs(t, ref.Wait(bg), suspend.ErrAbandoned)
			require.Equal(t, 1, lives)
		}},
		{"A message of a Watch takes no room", func(t *testing.T, s *fifo.Scheduler) {
			other := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error { return nil }, actor.Options[int]{})
			require.NoError(t, other.Wait(bg))
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				self.Watch(other, func(error) int { return -1 })
				return self.React(func(m int) error {
					if m == -1 {
						return actor.Skip
					}
					return nil
				})
			}, actor.Options[int]{Cap: 1})
			schedtest.Settle()
			defer ref.Kill(nil)
			require.NoError(t, ref.Send(1))
			require.NoError(t, ref.Wait(bg))
		}},
		{"A message that takes no room leaves none", func(t *testing.T, s *fifo.Scheduler) {
			other := actor.Spawn(bg, s, func(context.Context, *actor.Self[int]) error { return nil }, actor.Options[int]{})
			ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
				self.Watch(other, func(error) int { return -1 })
				if _, err := self.Receive(bg); err != nil {
					return err
				}
				return errors.Join(self.Ref().Send(1), self.Ref().Send(2))
			}, actor.Options[int]{Cap: 1})
			require.ErrorIs(t, ref.Wait(bg), actor.ErrFull)
		}},
		{"An error that wraps ErrStopped ends an actor normally, and no Restart follows", func(t *testing.T, s *fifo.Scheduler) {
			lives := 0
			body := func(context.Context, *actor.Self[int]) error {
				lives++
				return fmt.Errorf("done: %w", actor.ErrStopped)
			}
			require.NoError(t, actor.Spawn(bg, s, body, actor.Options[int]{}).Wait(bg))
			require.NoError(t, actor.Spawn(bg, s, actor.Restart(actor.Policy{Max: 1}, body), actor.Options[int]{}).Wait(bg))
			require.Equal(t, 2, lives)
		}},
		{"A normal end kills no linked actor, whichever of the two called Link", func(t *testing.T, s *fifo.Scheduler) {
			for first := range 2 {
				var refs [2]actor.Ref[int]
				refs[0] = actor.Spawn(bg, s, lasting[int], actor.Options[int]{})
				refs[1] = actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
					self.Link(refs[0])
					return lasting(ctx, self)
				}, actor.Options[int]{})
				schedtest.Settle()
				refs[first].Stop()
				require.NoError(t, refs[first].Wait(bg))
				schedtest.Settle()
				refs[1-first].Stop()
				require.NoError(t, refs[1-first].Wait(bg))
			}
		}},
		{"A message that has taken no room leaves none, also when a RecvOp takes it", func(t *testing.T, s *fifo.Scheduler) {
			other := actor.Spawn(bg, s, func(context.Context, *actor.Self[int]) error { return nil }, actor.Options[int]{})
			require.NoError(t, other.Wait(bg))
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				self.Watch(other, func(error) int { return -1 })
				if _, err := suspend.Do(ctx, self.RecvOp(nil)); err != nil {
					return err
				}
				return errors.Join(self.Ref().Send(1), self.Ref().Send(2))
			}, actor.Options[int]{Cap: 1})
			require.ErrorIs(t, ref.Wait(bg), actor.ErrFull)
		}},
		{"The functions of OnEnd are called in reverse order", func(t *testing.T, s *fifo.Scheduler) {
			var order []int
			ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
				leave := func(i int) { self.OnEnd(func() { order = append(order, i) }) }
				leave(1)
				leave(2)
				return actor.Catch(func() error {
					leave(3)
					leave(4)
					return errOops
				}, func(error) error {
					leave(5)
					return nil
				})
			}, actor.Options[int]{})
			require.NoError(t, ref.Wait(bg))
			require.Equal(t, []int{4, 3, 5, 2, 1}, order)
		}},
		{"The timers of an actor end with it", func(t *testing.T, s *fifo.Scheduler) {
			timers := &timing{Spawner: s}
			ref := actor.Spawn(bg, timers, func(ctx context.Context, self *actor.Self[int]) error {
				for range 3 {
					self.SendAfter(time.Hour, 1)
				}
				return self.ReactWithin(time.Hour, func(int) error { return actor.Skip }, func() error { return nil })
			}, actor.Options[int]{})
			schedtest.Settle()
			require.EqualValues(t, 4, timers.waiting.Load())
			ref.Stop()
			require.NoError(t, ref.Wait(bg))
			schedtest.Settle()
			require.Zero(t, timers.waiting.Load())
		}},
	}
	bubbleRows = []fifoRow{
		{"A Stop while the children of a failed life end: the failure is the end", func(t *testing.T, s *fifo.Scheduler) {
			var hold, in promise.Promise[int]
			lives := 0
			ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, func(ctx context.Context, self *actor.Self[int]) error {
				if lives++; lives > 1 {
					return lasting(ctx, self)
				}
				actor.Spawn(ctx, s, func(context.Context, *actor.Self[int]) error {
					_ = in.Fill(0)
					_, err := hold.Await(bg)
					return err
				}, actor.Options[int]{})
				_, _ = in.Await(ctx)
				return errOops
			}), actor.Options[int]{})
			_, _ = in.Await(bg)
			_ = suspend.Sleep(bg, time.Second) // lets the actor wait for its child
			ref.Stop()
			_ = hold.Fill(0)
			require.Equal(t, errOops, ref.Wait(bg))
			require.Equal(t, 1, lives)
		}},
		{"An hour of timeouts, in virtual time, is an hour to the nanosecond. Skipped messages do not delay a timeout", func(t *testing.T, s *fifo.Scheduler) {
			begun := time.Now()
			minutes, skipped := 0, 0
			skip := func(int) error { skipped++; return actor.Skip }
			ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
				return actor.LoopWhile(func() bool { minutes++; return minutes <= 30 }, func() error {
					return self.ReactWithin(time.Minute, skip, func() error {
						require.ErrorIs(t, self.HandleWithin(bg, time.Minute, skip), actor.ErrTimeout)
						require.Equal(t, time.Duration(minutes)*2*time.Minute, time.Since(begun))
						return nil
					})
				})
			}, actor.Options[int]{})
			_ = s.Go(func() {
				for ref.Send(1) == nil {
					_ = suspend.Sleep(bg, 7*time.Second)
				}
			})
			require.NoError(t, ref.Wait(bg))
			require.Equal(t, time.Hour, time.Since(begun))
			require.Greater(t, skipped, 500)
		}},
		{"A message that stands for an absolute deadline arrives when it is due, whatever comes before", func(t *testing.T, s *fifo.Scheduler) {
			begun := time.Now()
			ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[string]) error {
				self.SendAfter(time.Hour, "due")
				return actor.Loop(func() error {
					return self.ReactWithin(time.Second, func(m string) error {
						require.Equal(t, "due", m)
						return actor.ErrStopped
					}, func() error { return nil })
				})
			}, actor.Options[string]{})
			require.NoError(t, ref.Wait(bg))
			require.Equal(t, time.Hour, time.Since(begun))
		}},
		{"Restarts wait, are counted, and end", func(t *testing.T, s *fifo.Scheduler) {
			var at []time.Duration
			var failures []error
			cleaned := 0
			begun := time.Now()
			ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{
				Max: 3, Within: time.Minute, Panics: true,
				Backoff:   func(n int) time.Duration { return time.Duration(n) * time.Second },
				OnRestart: func(err error) { failures = append(failures, err) },
			}, func(_ context.Context, self *actor.Self[int]) error {
				at = append(at, time.Since(begun))
				self.OnEnd(func() { cleaned++ })
				return self.React(func(m int) error {
					if m%2 == 0 {
						panic(errOops)
					}
					return errOops
				})
			}), actor.Options[int]{})
			for i := range 3 {
				_ = ref.Send(i)
			}
			_ = suspend.Sleep(bg, time.Hour)
			require.Equal(t, []time.Duration{0, 1 * time.Second, 3 * time.Second, 6 * time.Second}, at)
			for i := range 4 { // the first three are no longer in the list
				_ = ref.Send(2*i + 1)
			}
			require.Equal(t, errOops, ref.Wait(bg))
			require.Len(t, failures, 6)
			var p *suspend.PanicError
			require.ErrorAs(t, failures[0], &p)
			require.ErrorIs(t, p, errOops)
			require.Contains(t, string(p.Stack), "actor_test")
			require.Equal(t, 7, cleaned)
		}},
		{"A SendAfter is accepted by a full mailbox, and takes no room", func(t *testing.T, s *fifo.Scheduler) {
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				self.SendAfter(time.Second, 7)
				return actor.AndThen(self.HandleWithin(ctx, time.Minute, func(m int) error {
					if m != 7 {
						return actor.Skip
					}
					require.ErrorIs(t, self.Ref().Send(3), actor.ErrFull) // the first message is still in the mailbox
					return nil
				}), func() error {
					require.ErrorIs(t, self.Ref().Send(3), actor.ErrFull)
					return nil
				})
			}, actor.Options[int]{Cap: 1})
			require.NoError(t, ref.Send(1))
			require.NoError(t, ref.Wait(bg))
		}},
		{"A restart counts for Within, and no longer: a restart that is exactly as old as that is forgotten", func(t *testing.T, s *fifo.Scheduler) {
			lives := 0
			ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{Max: 1, Within: time.Minute}, func(_ context.Context, self *actor.Self[int]) error {
				lives++
				return self.React(func(int) error { return errOops })
			}), actor.Options[int]{})
			for range 3 {
				require.NoError(t, ref.Send(1))
				_ = suspend.Sleep(bg, time.Minute)
			}
			require.Equal(t, 4, lives)
			require.NoError(t, ref.Send(1))
			_ = suspend.Sleep(bg, time.Minute-1)
			require.NoError(t, ref.Send(1))
			require.Equal(t, errOops, ref.Wait(bg))
		}},
		{"An actor that is stopped accepts no message of a Watch, nor of a SendAfter", func(t *testing.T, s *fifo.Scheduler) {
			other := actor.Spawn(bg, s, lasting[int], actor.Options[int]{})
			var goOn promise.Promise[int]
			var self2 *actor.Self[int]
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				self2 = self
				self.Watch(other, func(error) int { return 1 })
				self.SendAfter(time.Second, 2)
				_, err := goOn.Await(ctx)
				return err
			}, actor.Options[int]{Dead: func(m int) { t.Errorf("%d was accepted", m) }})
			schedtest.Settle()
			ref.Stop()
			other.Stop()
			_ = suspend.Sleep(bg, time.Minute)
			require.Zero(t, self2.Len())
			_ = goOn.Fill(0)
			require.NoError(t, ref.Wait(bg))
		}},
	}
)

type fifoRow struct {
	name string
	main func(t *testing.T, s *fifo.Scheduler)
}

func TestFIFO(t *testing.T) {
	for _, row := range fifoRows {
		t.Run(row.name, func(t *testing.T) { schedtest.OnFIFO(t, func(s *fifo.Scheduler) { row.main(t, s) }) })
	}
}

func TestVirtualTime(t *testing.T) {
	for _, row := range bubbleRows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fifo.New(fifo.Options{})
				require.NoError(t, s.Run(bg, func(context.Context) error { row.main(t, s); return nil }))
			})
		})
	}
}
