package main

import (
	"context"
	"log/slog"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// These rows compare actors with goroutines that use channels. The flood rows compare actors with protoactor-go. Other actor libraries are
// not compared, because the module proxy does not serve their newer versions.

// A way is a function with which an actor receives messages. The way reacting uses React, which needs no stack, and the way receiving uses
// Receive, which suspends a task.
type way func(ctx context.Context, self *actor.Self[int], f func(int) error) error

func reacting[M any](_ context.Context, self *actor.Self[M], f func(M) error) error {
	next := self.React(f)
	return actor.Loop(func() error { return next })
}

func receiving(ctx context.Context, self *actor.Self[int], f func(int) error) error {
	for {
		m, err := self.Receive(ctx)
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
}

// onFifo returns a work function that calls f with a fifo, in a task of the fifo. onPool does the same with a pool of two workers, but
// calls f outside the pool's tasks.
func onFifo(f func(on suspend.Spawner, n int)) work {
	return func(n int) { inFifo(func() { f(suspend.Here(), n) }) }
}

func onPool(f func(on suspend.Spawner, n int), peer work) opener {
	return func(b *bench) (side, side) {
		p := b.pool(2)
		return b.works(func(n int) { f(p, n) }, peer, 1)
	}
}

func twoWorkers(b *bench) suspend.Spawner { return b.pool(2) }

// aFifo starts a fifo, which runs on a new goroutine until b ends.
func aFifo(b *bench) suspend.Spawner {
	s, over, ended := fifo.New(fifo.Options{}), promise.New[int](), make(chan struct{})
	go func() {
		defer close(ended)
		ok(s.Run(bg, func(ctx context.Context) error { _, err := over.Await(ctx); return err }))
	}()
	b.close(func() { over.Fill(1); <-ended })
	return s
}

// pingPong sends n messages back and forth between two actors.
func pingPong(wait way) func(on suspend.Spawner, n int) {
	return func(on suspend.Spawner, n int) {
		var a, b actor.Ref[int]
		var ready promise.Promise[int]
		player := func(to *actor.Ref[int]) func(context.Context, *actor.Self[int]) error {
			return func(ctx context.Context, self *actor.Self[int]) error {
				must(ready.Await(ctx))
				return wait(ctx, self, func(left int) error {
					if left <= 0 {
						_ = to.Send(left - 1)
						return actor.ErrStopped
					}
					return to.Send(left - 1)
				})
			}
		}
		a, b = actor.Spawn(bg, on, player(&b), actor.Options[int]{}), actor.Spawn(bg, on, player(&a), actor.Options[int]{})
		ready.Fill(1)
		ok(a.Send(n))
		ok(a.Wait(bg))
		ok(b.Wait(bg))
	}
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
	goroutines(player(a, b), player(b, a))
}

// ringOn creates a ring of n actors, and returns a work function that sends one message around the ring. Each pass from one actor to the
// next counts as an operation.
func ringOn(b *bench, on suspend.Spawner, n int, wait way) work {
	refs := make([]actor.Ref[int], n)
	done := make(chan struct{}, 1)
	for i := range refs {
		refs[i] = actor.Spawn(bg, on, func(ctx context.Context, self *actor.Self[int]) error {
			return wait(ctx, self, func(left int) error {
				if left == 0 {
					done <- struct{}{}
					return nil
				}
				return refs[(i+1)%n].Send(left - 1)
			})
		}, actor.Options[int]{})
	}
	b.close(func() {
		for _, r := range refs {
			r.Stop()
		}
		for _, r := range refs {
			ok(r.Wait(bg))
		}
	})
	return func(n int) { ok(refs[0].Send(n)); <-done }
}

func ringOfGoroutines(b *bench, n int) work {
	first, over, done := make(chan int, 1), make(chan struct{}), make(chan struct{})
	member := func(in, out chan int) {
		for {
			select {
			case left := <-in:
				if left == 0 {
					done <- struct{}{}
				} else {
					out <- left - 1
				}
			case <-over:
				return
			}
		}
	}
	in := first
	for range n - 1 {
		out := make(chan int, 1)
		go member(in, out)
		in = out
	}
	go member(in, first)
	b.close(func() { close(over) })
	return func(n int) { first <- n; <-done }
}

// besideRing compares a ring of n actors, on a scheduler that the function on starts, with a ring of n goroutines.
func besideRing(n int, on func(b *bench) suspend.Spawner, wait way) opener {
	return func(b *bench) (side, side) {
		n := b.of(n, 50)
		return b.works(ringOn(b, on(b), n, wait), ringOfGoroutines(b, n), 1)
	}
}

type floodMessage struct{ _ int }

// flood compares the sending of messages from the given number of goroutines to one actor.
func flood(senders int) opener {
	return func(b *bench) (ours, peer side) {
		system := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
		b.close(func() { system.Shutdown() })
		left, done := 0, make(chan struct{})
		count := func() {
			if left--; left == 0 {
				done <- struct{}{}
			}
		}
		to := actor.Spawn(bg, b.pool(2), func(ctx context.Context, self *actor.Self[any]) error {
			return reacting(ctx, self, func(any) error { count(); return nil })
		}, actor.Options[any]{})
		b.close(func() { to.Stop(); ok(to.Wait(bg)) })
		theirs := system.Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if _, ok := c.Message().(*floodMessage); ok {
				count()
			}
		}))
		m := new(floodMessage)
		by := func(send func()) work {
			return func(n int) {
				left = n
				go split(n, senders, func(int, int) { send() })
				<-done
			}
		}
		return b.works(by(func() { ok(to.Send(m)) }), by(func() { system.Root.Send(theirs, m) }), 1)
	}
}

// spawnActors starts n actors one after another. It sends each actor a message, and waits until the actor has ended. The caller must be a
// task of the actors' scheduler, so that each side waits on its own scheduler.
func spawnActors(on suspend.Spawner, n int) {
	for range n {
		r := actor.Spawn(bg, on, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(int) error { return nil })
		}, actor.Options[int]{})
		ok(r.Send(1))
		ok(r.Wait(bg))
	}
}

// watchersEnd ends n actors. If watches is true, each of them watches the same hub.
func watchersEnd(watches bool) func(on suspend.Spawner, n int) {
	return func(on suspend.Spawner, n int) {
		hub := actor.Spawn(bg, on, func(_ context.Context, self *actor.Self[int]) error {
			return reacting(bg, self, func(int) error { return nil })
		}, actor.Options[int]{})
		refs := make([]actor.Ref[int], n)
		for i := range refs {
			refs[i] = actor.Spawn(bg, on, func(_ context.Context, self *actor.Self[int]) error {
				if watches {
					self.Watch(hub, func(error) int { return 1 })
				}
				return actor.Loop(func() error { return self.React(func(int) error { return nil }) })
			}, actor.Options[int]{})
			suspend.Yield()
		}
		restart()
		for _, r := range refs {
			r.Stop()
		}
		for _, r := range refs {
			ok(r.Wait(bg))
		}
		stop()
		hub.Stop()
		ok(hub.Wait(bg))
	}
}

// spawnInTask calls spawnActors in a task of a scheduler.
func spawnInTask(on suspend.Spawner, n int) { inTask(on, func() { spawnActors(on, n) }) }

func spawnWithChannel(n int) {
	for range n {
		in, done := make(chan int, 1), make(chan struct{})
		go func() { <-in; close(done) }()
		in <- 1
		<-done
	}
}

type getMessage struct{ actor.Request[int] }

// asks sends n requests to an actor, and waits for each reply.
func asks(on suspend.Spawner, n int) {
	to := actor.Spawn(bg, on, func(ctx context.Context, self *actor.Self[*getMessage]) error {
		return reacting(ctx, self, func(m *getMessage) error { m.Reply(1); return nil })
	}, actor.Options[*getMessage]{})
	times(n, func() { must(actor.Ask(bg, to, new(getMessage))) })
	to.Stop()
	ok(to.Wait(bg))
}

func asksByChannel(n int) {
	in := make(chan chan int)
	go func() {
		for reply := range in {
			reply <- 1
		}
	}()
	times(n, func() {
		reply := make(chan int, 1)
		in <- reply
		<-reply
	})
	close(in)
}
