package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Actors against goroutines with channels, and in the rows of floods and peers against protoactor-go. Other libraries of actors
// cannot be imported: their newer versions have no module that the proxy serves.
var actorRows = slicesOf(
	// A message is an operation. Two actors, or goroutines, send it to and fro.
	[]row{
		pair("actor-pingpong/react", "two goroutines, channels of one", 0.50, 0.30, func() (ours, peer func(int)) {
			return func(n int) { inFifo(func() { pingPong(suspend.Here(), n, reacting) }) }, pingPongChannels
		}),
		pair("actor-pingpong/receive", "two goroutines, channels of one", 0.85, 0.60, func() (ours, peer func(int)) {
			return func(n int) { inFifo(func() { pingPong(suspend.Here(), n, receiving) }) }, pingPongChannels
		}),
		onPool("actor-pingpong/pool", "two goroutines, channels of one", 0.70, 0.45, func(p *workstealing.Pool) (ours, peer func(int)) {
			return func(n int) { pingPong(p, n, reacting) }, pingPongChannels
		}),
		{id: "actor-pingpong/protoactor", against: "protoactor-go", unit: "ns", open: func(mode) (*sides, error) {
			system := protoSystem()
			return &sides{
				ours: timed(func(n int) { inFifo(func() { pingPong(suspend.Here(), n, reacting) }) }),
				peer: timed(func(n int) { pingPongProto(system, n) }), close: system.Shutdown}, nil
		}},
	},
	// One message goes round in a ring, and a pass from one to the next is an operation.
	[]row{
		{id: "actor-ring/600k", against: "600,000 goroutines, channels of one", unit: "ns", must: 0.30, aim: 0.15, rounds: 6, open: func(m mode) (*sides, error) {
			return ringSides(m.of(600_000, 50), true)
		}},
		{id: "actor-ring/600k-pool", against: "600,000 goroutines, channels of one", unit: "ns", must: 0.45, aim: 0.25, rounds: 6, open: func(m mode) (*sides, error) {
			return ringSides(m.of(600_000, 50), false)
		}},
		{id: "actor-ring/flat", against: "the same in a ring of 1000", unit: "ns", must: 2.5, aim: 1.5, rounds: 6, open: func(m mode) (*sides, error) {
			large, closeLarge := fifoRing(m.of(600_000, 50))
			small, closeSmall := fifoRing(m.of(1000, 10))
			return &sides{ours: timed(large), peer: timed(small), close: func() { closeLarge(); closeSmall() }}, nil
		}},
	},
	// A message is an operation: one actor receives what goroutines send.
	[]row{floodRow(1, 0.7, 0.35), floodRow(8, 0.6, 0.35)},
	// Start, one message, end.
	[]row{
		pair("actor-spawn/fifo", "go + channel", 1.3, 0.7, func() (ours, peer func(int)) {
			return func(n int) { inFifo(func() { spawnActors(suspend.Here(), n) }) }, spawnWithChannel
		}),
		onPool("actor-spawn/pool", "go + channel", 1.0, 0.7, func(p *workstealing.Pool) (ours, peer func(int)) {
			return func(n int) { spawnActors(p, n) }, spawnWithChannel
		}),
		pair("actor-ask", "go, a channel, a fresh channel for the reply", 0.9, 0.5, func() (ours, peer func(int)) {
			return func(n int) { inFifo(func() { asks(suspend.Here(), n) }) }, asksByChannel
		}),
		{id: "actor-ask-backlog", against: "an asker without unread mail", unit: "ns", must: 1.2, aim: 1.0, open: func(m mode) (*sides, error) {
			by := func(unread int) side {
				return timedBy(func(n int) (took time.Duration) {
					inFifo(func() { took = asksBy(suspend.Here(), unread, n) })
					return took
				})
			}
			return &sides{ours: by(m.of(100_000, 100)), peer: by(0)}, nil
		}},
		// An operation is one message that is looked at and skipped.
		{id: "actor-skip", against: "1 ns, not measured", unit: "ns", must: 3, aim: 1, open: func(m mode) (*sides, error) {
			in := actor.Open[int](context.Background())
			const skipped = 100_000
			for range m.of(skipped, 100) {
				must(0, in.Ref().Send(0))
			}
			return &sides{
				ours: timedWhole(skipped, func(n int) {
					for i := 0; i < n; i += skipped {
						must(0, in.Ref().Send(1))
						must(0, in.Handle(context.Background(), func(m int) error {
							if m == 0 {
								return actor.Skip
							}
							return nil
						}))
					}
				}),
				peer: func(time.Duration) (float64, error) { return 1, nil },
			}, nil
		}},
	},
	// What an idle one keeps alive: heap, and stacks.
	[]row{
		bytesRow("actor-bytes/react", 0.17, 0.12, func(s *fifo.Scheduler, i int) actor.Ref[int] {
			return actor.Spawn(context.Background(), s, func(_ context.Context, self *actor.Self[int]) error {
				return actor.Loop(func() error { return self.React(func(m int) error { use(m + i); return nil }) })
			})
		}),
		bytesRow("actor-bytes/receive", 1.5, 1.25, func(s *fifo.Scheduler, i int) actor.Ref[int] {
			return actor.Spawn(context.Background(), s, func(_ context.Context, self *actor.Self[int]) error {
				for {
					m, err := self.Receive(context.Background())
					if err != nil {
						return err
					}
					use(m + i)
				}
			})
		}),
	},
)

func slicesOf(all ...[]row) (rows []row) {
	for _, r := range all {
		rows = append(rows, r...)
	}
	return rows
}

// use keeps the compiler from leaving n out.
func use(n int) { runtime.KeepAlive(n) }

func onPool(id, against string, must_, aim float64, open func(p *workstealing.Pool) (ours, peer func(int))) row {
	return row{id: id, against: against, unit: "ns", must: must_, aim: aim, open: func(mode) (*sides, error) {
		p := workstealing.New(workstealing.Options{Workers: 2})
		ours, peer := open(p)
		return &sides{ours: timed(ours), peer: timed(peer), close: func() { must(0, p.Close()) }}, nil
	}}
}

type way func(self *actor.Self[int], f func(int) error) error

func reacting(self *actor.Self[int], f func(int) error) error {
	next := self.React(f)
	return actor.Loop(func() error { return next })
}

func receiving(self *actor.Self[int], f func(int) error) error {
	for {
		m, err := self.Receive(context.Background())
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
}

func pingPong(on suspend.Spawner, n int, wait way) {
	ctx := context.Background()
	var a, b actor.Ref[int]
	var ready promise.Promise[int]
	player := func(to *actor.Ref[int]) func(context.Context, *actor.Self[int]) error {
		return func(ctx context.Context, self *actor.Self[int]) error {
			must(ready.Await(ctx))
			return wait(self, func(left int) error {
				if left <= 0 {
					_ = to.Send(left - 1)
					return actor.ErrStopped
				}
				return to.Send(left - 1)
			})
		}
	}
	a, b = actor.Spawn(ctx, on, player(&b)), actor.Spawn(ctx, on, player(&a))
	must(0, ready.Fill(1))
	must(0, a.Send(n))
	must(0, a.Wait(ctx))
	must(0, b.Wait(ctx))
}

func pingPongChannels(n int) {
	a, b := make(chan int, 1), make(chan int, 1)
	player := func(in, out chan int) func() {
		return func() {
			for left := range in {
				out <- left - 1
				if left <= 0 {
					return
				}
			}
		}
	}
	a <- n
	both(player(a, b), player(b, a))
}

func ringSides(n int, onFifo bool) (*sides, error) {
	ours, stop := poolRing(n)
	if onFifo {
		stop()
		ours, stop = fifoRing(n)
	}
	first, closeAll := make(chan int, 1), make(chan struct{})
	done := make(chan struct{})
	in := first
	for i := range n {
		out := first
		if i < n-1 {
			out = make(chan int, 1)
		}
		go func(in, out chan int) {
			for {
				select {
				case left := <-in:
					if left == 0 {
						done <- struct{}{}
					} else {
						out <- left - 1
					}
				case <-closeAll:
					return
				}
			}
		}(in, out)
		in = out
	}
	return &sides{ours: timed(ours), peer: timed(func(n int) { first <- n; <-done }), close: func() { stop(); close(closeAll) }}, nil
}

// fifoRing has its fifo on a goroutine of its own, where it runs until it is stopped.
func fifoRing(n int) (passes func(int), stop func()) {
	s := fifo.New(fifo.Options{})
	var over promise.Promise[int]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		must(0, s.Run(context.Background(), func(ctx context.Context) error { _, err := over.Await(ctx); return err }))
	}()
	passes, stopActors := ringOn(s, n)
	return passes, func() { stopActors(); must(0, over.Fill(1)); <-ended }
}

func poolRing(n int) (passes func(int), stop func()) {
	p := workstealing.New(workstealing.Options{Workers: 2})
	passes, stopActors := ringOn(p, n)
	return passes, func() { stopActors(); must(0, p.Close()) }
}

func ringOn(on suspend.Spawner, n int) (passes func(int), stop func()) {
	refs := make([]actor.Ref[int], n)
	done := make(chan struct{}, 1)
	for i := range refs {
		refs[i] = actor.Spawn(context.Background(), on, func(_ context.Context, self *actor.Self[int]) error {
			next := self.React(func(left int) error {
				if left == 0 {
					done <- struct{}{}
					return nil
				}
				return refs[(i+1)%n].Send(left - 1)
			})
			return actor.Loop(func() error { return next })
		})
	}
	return func(n int) { must(0, refs[0].Send(n)); <-done }, func() {
		for _, r := range refs {
			r.Stop()
		}
		for _, r := range refs {
			must(0, r.Wait(context.Background()))
		}
	}
}

func floodRow(senders int, must_, aim float64) row {
	return row{id: fmt.Sprint("actor-flood/", senders), against: "protoactor-go", unit: "ns", must: must_, aim: aim, open: func(mode) (*sides, error) {
		p := workstealing.New(workstealing.Options{Workers: 2})
		system := protoSystem()
		left, done := 0, make(chan struct{})
		count := func() {
			if left--; left == 0 {
				done <- struct{}{}
			}
		}
		ours := actor.Spawn(context.Background(), p, func(_ context.Context, self *actor.Self[any]) error {
			next := self.React(func(any) error { count(); return nil })
			return actor.Loop(func() error { return next })
		})
		peer := system.Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if _, ok := c.Message().(*floodMessage); ok {
				count()
			}
		}))
		m := new(floodMessage)
		flood := func(send func()) side {
			return timed(func(n int) {
				n = max(1, n/senders)
				left = n * senders
				for range senders {
					go func() {
						for range n {
							send()
						}
					}()
				}
				<-done
			})
		}
		return &sides{
			ours:  flood(func() { must(0, ours.Send(m)) }),
			peer:  flood(func() { system.Root.Send(peer, m) }),
			close: func() { ours.Stop(); must(0, ours.Wait(context.Background())); must(0, p.Close()); system.Shutdown() },
		}, nil
	}}
}

type floodMessage struct{ n int }

type getMessage struct{ actor.Request[int] }

func spawnActors(on suspend.Spawner, n int) {
	ctx := context.Background()
	for range n {
		r := actor.Spawn(ctx, on, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(int) error { return nil })
		})
		must(0, r.Send(1))
		must(0, r.Wait(ctx))
	}
}

func spawnWithChannel(n int) {
	for range n {
		in, done := make(chan int, 1), make(chan struct{})
		go func() {
			<-in
			close(done)
		}()
		in <- 1
		<-done
	}
}

func answering(on suspend.Spawner) actor.Ref[*getMessage] {
	return actor.Spawn(context.Background(), on, func(_ context.Context, self *actor.Self[*getMessage]) error {
		next := self.React(func(m *getMessage) error { m.Reply(1); return nil })
		return actor.Loop(func() error { return next })
	})
}

func asks(on suspend.Spawner, n int) {
	ctx := context.Background()
	r := answering(on)
	for range n {
		must(actor.Ask(ctx, r, new(getMessage)))
	}
	r.Stop()
	must(0, r.Wait(ctx))
}

// asksBy has an actor with unread messages ask n times, and returns how long the Asks took.
func asksBy(on suspend.Spawner, unread, n int) (took time.Duration) {
	ctx := context.Background()
	r := answering(on)
	by := actor.Spawn(ctx, on, func(ctx context.Context, self *actor.Self[int]) error {
		must(0, self.Handle(ctx, func(m int) error {
			if m == 0 {
				return actor.Skip
			}
			return nil
		}))
		begun := time.Now()
		for range n {
			must(actor.Ask(ctx, r, new(getMessage)))
		}
		took = time.Since(begun)
		return nil
	})
	for range unread {
		must(0, by.Send(0))
	}
	must(0, by.Send(1))
	must(0, by.Wait(ctx))
	r.Stop()
	must(0, r.Wait(ctx))
	return took
}

func asksByChannel(n int) {
	in := make(chan chan int)
	go func() {
		for reply := range in {
			reply <- 1
		}
	}()
	for range n {
		reply := make(chan int, 1)
		in <- reply
		<-reply
	}
	close(in)
}

func bytesRow(id string, must_, aim float64, start func(s *fifo.Scheduler, i int) actor.Ref[int]) row {
	return row{id: id, against: "a goroutine in a channel", unit: "bytes", must: must_, aim: aim, rounds: 3, cold: true, open: func(m mode) (*sides, error) {
		n := m.of(100_000, 100)
		return &sides{
			ours: func(time.Duration) (float64, error) {
				var each float64
				s := fifo.New(fifo.Options{})
				must(0, s.Run(context.Background(), func(context.Context) error {
					refs := make([]actor.Ref[int], n)
					before := memoryInUse()
					for i := range n {
						refs[i] = start(s, i)
						suspend.Yield()
					}
					each = float64(memoryInUse()-before) / float64(n)
					for _, r := range refs {
						r.Stop()
					}
					return nil
				}))
				return each, nil
			},
			peer: func(time.Duration) (float64, error) {
				in := make([]chan int, n)
				var all sync.WaitGroup
				before := memoryInUse()
				for i := range n {
					c := make(chan int, 1)
					in[i] = c
					all.Go(func() {
						for m := range c {
							use(m + i)
						}
					})
				}
				for range 100 {
					runtime.Gosched()
				}
				each := float64(memoryInUse()-before) / float64(n)
				for _, c := range in {
					close(c)
				}
				all.Wait()
				return each, nil
			},
		}, nil
	}}
}

func memoryInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func protoSystem() *proto.ActorSystem {
	return proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
}

func pingPongProto(system *proto.ActorSystem, n int) {
	done := make(chan struct{})
	player := proto.PropsFromFunc(func(c proto.Context) {
		if left, ok := c.Message().(*protoPing); ok {
			if left.n == 0 {
				close(done)
				return
			}
			left.n--
			to := left.to
			left.to = c.Self()
			c.Send(to, left)
		}
	})
	a, b := system.Root.Spawn(player), system.Root.Spawn(player)
	system.Root.Send(a, &protoPing{n, b})
	<-done
	system.Root.Stop(a)
	system.Root.Stop(b)
}

type protoPing struct {
	n  int
	to *proto.PID
}
