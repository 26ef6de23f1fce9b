//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
	"github.com/braidgo/braid/watch"
)

func init() { programs = append(programs, manyPrograms...) }

// epoch is the time at which the clock begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// These programs use packages watch, broadcast, scope, rate, keyed and respool.
var manyPrograms = []program{
	{"watch", "3 × 2", func(w *explore.World) {
		var v watch.Value[int]
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				for now := v.Load(); now.Value != 2; {
					next, err := v.Changed(ctx, now.Version)
					if err != nil {
						return
					}
					if next.Version <= now.Version {
						panic(next)
					}
					now = next
				}
			})
		}
		w.Go("store", func(context.Context) { _ = v.Store(1); _ = v.Store(2) })
		w.OnIdle(lost)
	}},
	{"watch, close", "3 × 1", func(w *explore.World) {
		var v watch.Value[int]
		stored := errOops
		var got watch.State[int]
		var err error
		w.Go("changed", func(context.Context) { got, err = v.Changed(bg, 0) })
		w.Go("store", func(context.Context) { stored = v.Store(1) })
		w.Go("close", func(context.Context) { _ = v.Close() })
		w.OnIdle(lost)
		w.Check(func() error { return onlyIf((err == nil) == (stored == nil) && got.Value == int(got.Version)) })
	}},
	// A task that has seen a version waits for the next one. No update is lost.
	{"watch, Modify", "3 × 1", func(w *explore.World) {
		var v watch.Value[int]
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(context.Context) {
				if now, err := v.Modify(func(n int) int { suspend.Yield(); return n + 1 }); err != nil || now.Value != int(now.Version) {
					panic(fmt.Sprint(now, err))
				}
			})
		}
		w.Go("changed", func(ctx context.Context) {
			for now := v.Load(); now.Value < 2; {
				next, err := v.Changed(ctx, now.Version)
				if err != nil {
					return
				}
				now = next
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return same(v.Load().Value, 2) })
	}},
	{"watch, UntilOp", "3 × 1", func(w *explore.World) {
		var v watch.Value[int]
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if got, err := suspend.Do(ctx, v.UntilOp(func(n int) bool { return n >= 2 })); err == nil && got < 2 {
					panic(got)
				}
			})
		}
		w.Go("store", func(context.Context) { _ = v.Store(1); _ = v.Store(2) })
		w.OnIdle(lost)
	}},
	{"watch, UntilOp and Close", "3 × 1", func(w *explore.World) {
		var v watch.Value[int]
		var err error
		stored := errOops
		w.Go("until", func(context.Context) { _, err = suspend.Do(bg, v.UntilOp(func(n int) bool { return n == 1 })) })
		w.Go("store", func(context.Context) { stored = v.Store(1) })
		w.Go("close", func(context.Context) { _ = v.Close() })
		w.OnIdle(lost)
		w.Check(func() error { return onlyIf((err == nil) == (stored == nil) && (err == nil || err == watch.ErrClosed)) })
	}},
	// Two tasks read from one subscription. The values that either has received, and the values that were reported to either as
	// missing, are all published values.
	{"broadcast, Lag", "3 × 1", func(w *explore.World) {
		topic := broadcast.New[int]()
		sub := topic.Subscribe(1, broadcast.Lag)
		got, published := 0, 0
		recv := func(ctx context.Context) {
			var lagged *broadcast.LaggedError
			if _, err := sub.Recv(ctx); err == nil {
				got++
			} else if errors.As(err, &lagged) {
				got += int(lagged.Missed)
			}
		}
		w.Go("one", recv)
		w.Go("other", recv)
		w.Go("publish", func(ctx context.Context) {
			for i := range 3 {
				if topic.Publish(ctx, i) == nil {
					published++
				}
			}
		})
		w.Check(func() error {
			_ = topic.Close()
			for range 3 {
				recv(bg)
			}
			return same(got, published)
		})
	}},
	{"chanx, await close", "3 × 1", func(w *explore.World) {
		c := chanx.New[int](0)
		closing := false
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if c.AwaitClose(ctx) == nil && !closing {
					panic("it is open")
				}
			})
		}
		w.Go("close", func(context.Context) { closing = true; _ = c.Close() })
		w.OnIdle(lost)
	}},
	{"broadcast", "4 × 1", func(w *explore.World) {
		topic := broadcast.New[int]()
		subs := []*broadcast.Subscription[int]{topic.Subscribe(1, broadcast.Wait), topic.Subscribe(2, broadcast.Wait)}
		published := 0
		for i := range 2 {
			w.Go(fmt.Sprint("publish", i), func(ctx context.Context) {
				if topic.Publish(ctx, i+1) == nil {
					published += 10 + i + 1 // also counts a value that was never published
				}
			})
		}
		received := 0
		w.Go("recv", func(ctx context.Context) {
			if v, err := subs[0].Recv(ctx); err == nil {
				received += 10 + v
			}
		})
		w.OnIdle(func(waiting []string) error {
			return onlyIf(received == 0 && (len(waiting) == 1 || !slices.Contains(waiting, "recv")))
		})
		w.Check(func() error {
			all := 0
			_ = topic.Close()
			for v := range subs[0].All(bg) {
				received += 10 + v
			}
			for v := range subs[1].All(bg) {
				all += 10 + v
			}
			return errors.Join(same(received, published), same(all, published))
		})
	}},
	{"broadcast, a subscriber leaves", "3 × 1", func(w *explore.World) {
		topic := broadcast.New[int]()
		sub := topic.Subscribe(1, broadcast.Wait)
		_ = topic.Publish(bg, 0)
		for i := range 2 {
			w.Go(fmt.Sprint("publish", i), func(ctx context.Context) { _ = topic.Publish(ctx, i+1) })
		}
		w.Go("leave", func(context.Context) { sub.Close() })
		w.OnIdle(lost)
	}},
	{"broadcast, close", "3 × 1", func(w *explore.World) {
		topic := broadcast.New[int]()
		full, empty := topic.Subscribe(1, broadcast.Wait), topic.Subscribe(2, broadcast.DropSubscriber)
		_ = topic.Publish(bg, 1)
		_, _ = empty.Recv(bg)
		w.Go("publish", func(ctx context.Context) { _ = topic.Publish(ctx, 2) })
		w.Go("recv", func(ctx context.Context) { _, _ = empty.Recv(ctx) })
		w.Go("close", func(context.Context) { _ = topic.Close() })
		w.OnIdle(lost)
		w.Check(func() error {
			v, err := full.Recv(bg)
			_, end := full.Recv(bg)
			return errors.Join(same(v, 1), err, onlyIf(end == broadcast.ErrClosed))
		})
	}},
	{"Group, closed by two", "3 × 1", func(w *explore.World) {
		g := scope.Open(bg, scope.FirstError)
		live, released := 0, false
		g.OnRelease(func() { released = true })
		for _, name := range []string{"close", "shutdown"} {
			w.Go(name, func(ctx context.Context) {
				end := g.Close
				if name == "shutdown" {
					end = func() error { return g.Shutdown(ctx) }
				}
				if err := end(); live > 0 || !released || err != nil && !errors.Is(err, context.Canceled) {
					panic(fmt.Sprint(live, released, err))
				}
			})
		}
		w.Go("start", func(context.Context) {
			_ = recovered(func() { // after the end of the scope
				g.Go(suspend.Here(), func(context.Context) error {
					live++
					suspend.Yield()
					live--
					return nil
				})
			})
		})
		w.OnIdle(lost)
	}},
	{"Group, a child that waits in a Limit", "3 × 1", func(w *explore.World) {
		g := scope.Open(bg, scope.Collect)
		var first, second error
		w.Go("start", func(context.Context) {
			run := func(ctx context.Context) (int, error) { return 1, suspend.Err(ctx) }
			one := scope.Limit(1, suspend.Here())
			scope.Start(g, one, run)
			c := scope.Start(g, one, run)
			c.Cancel(errOops)
			_, second = c.Await(bg)
			first = g.Shutdown(bg)
		})
		w.Go("cancel", func(context.Context) { g.Cancel(nil) })
		w.OnIdle(lost)
		w.Check(func() error {
			return onlyIf(first == nil && (second == nil || errors.Is(second, errOops) || errors.Is(second, context.Canceled)))
		})
	}},
	{"keyed, Mutex", "2 × 2", func(w *explore.World) {
		var m keyed.Mutex[int]
		var in inside
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				for range 2 {
					if m.LockContext(ctx, 1) == nil {
						in.write()
						m.Unlock(1)
					}
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return same(m.Len(), 0) })
	}},
	{"keyed, Cache", "3 × 1", func(w *explore.World) {
		var told promise.Promise[int]
		live, most := 0, 0
		c := keyed.NewCache(func(ctx context.Context, _ int) (int, error) {
			live++
			defer func() { live-- }()
			most = max(most, live)
			return told.Await(ctx)
		}, keyed.CacheOptions{})
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if v, err := c.Get(ctx, 1); err == nil && v != 7 || err != nil && ctx.Err() == nil {
					panic(fmt.Sprint(v, err))
				}
			})
		}
		w.Go("fill", func(context.Context) { _ = told.Fill(7) })
		w.OnIdle(lost)
		w.Check(func() error {
			s := c.Stats()
			return errors.Join(same(live, 0), same(s.Kept+s.Loading, 0), atMost(2, most))
		})
	}},
	{"keyed, Cache, one gives up", "3 × 1", func(w *explore.World) {
		var told promise.Promise[int]
		impatient, end := cancel.New(bg)
		c := keyed.NewCache(func(ctx context.Context, _ int) (int, error) { return told.Await(ctx) }, keyed.CacheOptions{})
		w.Go("one", func(context.Context) { _, _ = c.Get(impatient, 1) })
		w.Go("other", func(context.Context) {
			if v, err := c.Get(bg, 1); v != 7 || err != nil {
				panic(fmt.Sprint(v, err))
			}
		})
		w.Go("end", func(context.Context) { end(nil); _ = told.Fill(7) })
		w.OnIdle(lost)
	}},
	{"keyed, Cache, bounded", "3 × 1", func(w *explore.World) {
		c := keyed.NewCache(func(_ context.Context, k int) (int, error) { suspend.Yield(); return k, nil }, keyed.CacheOptions{TTL: time.Hour, Max: 1})
		for _, keys := range [][]int{{1, 2}, {2}, {3}} {
			w.Go(fmt.Sprint("get ", keys), func(ctx context.Context) {
				for _, k := range keys {
					if v, err := c.Get(ctx, k); err == nil && v != k || err != nil && ctx.Err() == nil {
						panic(fmt.Sprint(v, err))
					}
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error {
			s := c.Stats()
			return errors.Join(atMost(1, s.Kept), same(s.Loading, 0))
		})
	}},
	{"Stream, break", "2 × 1", func(w *explore.World) {
		broke := false
		w.Go("reader", func(context.Context) {
			in := func(yield func(int, error) bool) {
				for i := 0; ; i++ {
					if !yield(i, nil) {
						broke = true
						return
					}
				}
			}
			for range scope.Stream(bg, suspend.Here(), 1, in, func(_ context.Context, i int) (int, error) { return i, nil }) {
				break
			}
			if !broke { // no operation of the input waits
				panic("the input has not ended as after a break")
			}
		})
		w.OnIdle(lost)
	}},
	{"rate, Limiter", "3 × 1", func(w *explore.World) {
		l := rate.NewLimiter(rate.Every(time.Second), 1)
		var served, due []time.Duration // times since the epoch
		serves := func(at time.Time) {
			served, due = append(served, suspend.Now().Sub(epoch)), append(due, at.Sub(epoch))
		}
		w.Go("allow", func(context.Context) {
			if l.Allow(1) {
				serves(epoch)
			}
		})
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if at, err := suspend.Do(ctx, l.WaitOp(1)); err == nil {
					serves(at)
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error {
			n := time.Duration(len(served))
			for i := range n { // neither early nor late, because a task that was cancelled has taken no token
				if served[i] < i*time.Second || due[i] > (n-1)*time.Second {
					return fmt.Errorf("due at %v, served at %v", due, served)
				}
			}
			return nil
		})
	}},
	{"rate, a smaller burst", "3 × 1", func(w *explore.World) {
		l := rate.NewLimiter(rate.Every(time.Second), 2)
		_ = l.Allow(2)
		for _, n := range []int{2, 1} {
			w.Go(fmt.Sprint("wait ", n), func(ctx context.Context) {
				switch err := l.WaitN(ctx, n); {
				case err == nil, err == rate.ErrTooLarge && n == 2, ctx.Err() != nil:
				default:
					panic(err)
				}
			})
		}
		w.Go("burst", func(context.Context) { l.SetBurst(1) })
		w.OnIdle(lost)
		w.Check(func() error {
			if left := l.Tokens(); left < 0 || left > 1 {
				return fmt.Errorf("%v tokens are left, of 1", left)
			}
			return nil
		})
	}},
	{"rate, Ticker", "2 × 1", func(w *explore.World) {
		t := rate.NewTicker(time.Second, rate.CatchUp)
		var ticks []time.Duration
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if due, err := t.Tick(ctx); err == nil {
					ticks = append(ticks, due.Sub(epoch))
					if suspend.Now().Before(due) {
						panic("early")
					}
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error {
			slices.Sort(ticks)
			for i, due := range ticks {
				if due != time.Duration(i+1)*time.Second {
					return fmt.Errorf("ticks due at %v", ticks)
				}
			}
			return nil
		})
	}},
	{"respool", "3 × 1", func(w *explore.World) {
		var got leases
		p := got.pool()
		for i, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				l, err := p.Acquire(ctx)
				if err != nil {
					return
				}
				if i == 0 {
					l.Discard()
				}
				got.uses(1)
				got.uses(-1)
				l.Release()
			})
		}
		w.Go("expire", func(context.Context) { p.Expire() })
		w.OnIdle(lost)
		w.Check(func() error { return got.right(p) })
	}},
	{"respool, closed", "3 × 1", func(w *explore.World) {
		var got leases
		p := got.pool()
		w.Go("one", func(ctx context.Context) {
			if l, err := p.Acquire(ctx); err == nil {
				l.Release()
			}
		})
		w.Go("other", func(ctx context.Context) {
			l, err := p.Acquire(ctx)
			if err == nil {
				l.Release()
			} else if !errors.Is(err, suspend.ErrClosed) && ctx.Err() == nil {
				panic(err)
			}
		})
		left := -1
		w.Go("close", func(context.Context) {
			if p.Shutdown(bg) == nil {
				left = got.live + p.Stats().Leased
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(same(left, 0), got.right(p)) })
	}},
	{"respool, Reset", "3 × 1", resetProgram(1)},
	{"respool, Reset of two", "3 × 1", resetProgram(2)},
	{"respool, TryAcquire", "3 × 1", func(w *explore.World) {
		var got leases
		p := got.pool()
		leased := 0
		use := func(l *respool.Lease[int]) {
			leased++
			got.uses(1)
			got.uses(-1)
		}
		w.Go("acquire", func(ctx context.Context) {
			for range 2 {
				if l, err := p.Acquire(ctx); err == nil {
					use(l)
					l.Release()
				}
			}
		})
		w.Go("try", func(context.Context) {
			if l, ok := p.TryAcquire(); ok {
				use(l)
				l.ReleaseUnused()
			}
		})
		w.Go("all", func(context.Context) {
			for _, l := range p.AcquireAllIdle() {
				use(l)
				l.ReleaseUnused()
			}
		})
		w.OnIdle(lost)
		w.Check(func() error {
			s := p.Stats()
			return errors.Join(got.right(p), onlyIf(s.AcquireCount <= leased && leased <= s.AcquireCount+1 && s.EmptyAcquireCount <= s.AcquireCount))
		})
	}},
	{"respool, Reset during a Check", "2 × 1", func(w *explore.World) {
		var got leases
		o, begun, over, checked := got.options(), 0, 0, 0
		open := o.Open
		o.MaxLifetime, o.Fresh = 0, 0
		o.Open = func(ctx context.Context) (int, error) {
			n := begun
			_, err := open(ctx)
			return n, err
		}
		o.Check = func(context.Context, int) error {
			suspend.Yield()
			checked = over
			return nil
		}
		p := respool.New(o)
		w.Go("acquire", func(ctx context.Context) {
			for range 2 {
				if l, err := p.Acquire(ctx); err == nil {
					if l.Value < checked {
						panic("outdated")
					}
					l.Release()
				}
			}
		})
		w.Go("reset", func(context.Context) {
			begun++
			p.Reset()
			over++
		})
		w.OnIdle(lost)
		w.Check(func() error { return got.right(p) })
	}},
	{"respool, closed during a Check", "2 × 1", func(w *explore.World) {
		var got leases
		var closed atomicx.Bool
		o := got.options()
		o.Check = func(context.Context, int) error {
			if suspend.Yield(); closed.Load() {
				return errOops
			}
			return nil
		}
		p := respool.New(o)
		w.Go("acquire", func(ctx context.Context) {
			for range 2 {
				if l, err := p.Acquire(ctx); err == nil {
					l.Release()
				}
			}
		})
		w.Go("close", func(context.Context) {
			_ = p.Close()
			closed.Store(true)
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(atMost(1, p.Stats().Opened), got.right(p)) })
	}},
}

// resetProgram has a pool of n resources, and a Reset at any time. The value of a resource is the number of Resets before its
// Open.
func resetProgram(n int) func(w *explore.World) {
	return func(w *explore.World) {
		var got leases
		o, begun, over := got.options(), 0, 0
		open := o.Open
		o.Max, o.MaxLifetime = n, 0 // without lifetimes, because the final check runs on a different clock
		o.Open = func(ctx context.Context) (int, error) {
			n := begun
			_, err := open(ctx)
			return n, err
		}
		p := respool.New(o)
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				before := over
				l, err := p.Acquire(ctx)
				if err != nil {
					return
				}
				if l.Value < before {
					panic("outdated")
				}
				suspend.Yield()
				l.Release()
			})
		}
		w.Go("reset", func(context.Context) {
			begun++
			p.Reset()
			over++
		})
		w.OnIdle(lost)
		w.Check(func() error {
			idle := p.Stats().Idle
			all := p.AcquireAllIdle()
			for _, l := range all {
				l.ReleaseUnused()
			}
			outdated := slices.ContainsFunc(all, func(l *respool.Lease[int]) bool { return l.Value < over })
			return errors.Join(same(idle, len(all)), same(p.Stats().Idle, got.live), same(p.Stats().Leased, 0), onlyIf(!outdated))
		})
	}
}

// leases counts the resources, the calls of Open, and the tasks that use resources, of a respool.Pool of one.
type leases struct{ live, opening, most, used, shared int }

func (o *leases) pool() *respool.Pool[int] { return respool.New(o.options()) }

func (o *leases) options() respool.Options[int] {
	return respool.Options[int]{
		Max: 1,
		Open: func(context.Context) (int, error) {
			o.opening++
			o.most = max(o.most, o.opening+o.used)
			suspend.Yield()
			o.opening--
			o.live++
			return 1, nil
		},
		Close:       func(int) { suspend.Yield(); o.live-- },
		MaxLifetime: time.Hour,
	}
}

func (o *leases) uses(n int) {
	o.used += n
	o.shared = max(o.shared, o.used)
	suspend.Yield()
}

func (o *leases) right(p *respool.Pool[int]) error {
	return errors.Join(atMost(1, o.most), atMost(1, o.shared), same(p.Stats().Leased, 0), same(p.Stats().Idle, o.live))
}
