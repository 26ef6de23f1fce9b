package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

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

// ringOn creates a ring of n actors, and returns a work function that sends the given number of tokens around the ring. Each pass from one
// actor to the next counts as an operation.
func ringOn(b *bench, on suspend.Spawner, n, tokens int, wait way) work {
	refs := make([]actor.Ref[int], n)
	done := make(chan struct{}, tokens)
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
	return passes(n, tokens, func(i, left int) { ok(refs[i].Send(left)) }, done)
}

// passes returns a work function for a ring of n members. The work function gives the tokens to members at equal distances, and waits until
// all tokens have been passed on often enough.
func passes(n, tokens int, send func(i, left int), done chan struct{}) work {
	return func(total int) {
		upTo(tokens, func(i int) { send(i*n/tokens, (total+i)/tokens) })
		times(tokens, func() { <-done })
	}
}

// ringOfGoroutines calls the function begin, unless it is nil, at the beginning of each goroutine.
func ringOfGoroutines(b *bench, n, tokens int, begin func()) work {
	all, over, done := make([]chan int, n), make(chan struct{}), make(chan struct{}, tokens)
	upTo(n, func(i int) { all[i] = make(chan int, 1) })
	member := func(in, out chan int) {
		if begin != nil {
			begin()
		}
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
	upTo(n, func(i int) { go member(all[i], all[(i+1)%n]) })
	b.close(func() { close(over) })
	return passes(n, tokens, func(i, left int) { all[i] <- left }, done)
}

// ringOfProto is a ring of actors of protoactor-go.
func ringOfProto(b *bench, n, tokens int) work {
	system := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	b.close(func() { system.Shutdown() })
	all, done := make([]*proto.PID, n), make(chan struct{}, tokens)
	type token struct{ left int }
	upTo(n, func(i int) {
		all[i] = system.Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if t, is := c.Message().(token); is && t.left == 0 {
				done <- struct{}{}
			} else if is {
				c.Send(all[(i+1)%n], token{t.left - 1})
			}
		}))
	})
	return passes(n, tokens, func(i, left int) { system.Root.Send(all[i], token{left}) }, done)
}

// tokenRings reproduces figure 6 of Haller and Odersky (2009): ten tokens in a ring. The result is the number of passes per second. Each
// round makes its own ring, and counts only the passes.
func tokenRings(b *bench, x float64) (all []side) {
	const tokens, mostThreads = 10, 1000 // the system has a limit for threads
	n, count := int(x), b.of(300_000, 100)
	for _, ring := range []func(b *bench) work{
		func(b *bench) work { return ringOn(b, b.pool(0), n, tokens, reacting) },
		func(b *bench) work { return ringOn(b, b.pool(0), n, tokens, receiving) },
		func(b *bench) work { return ringOfGoroutines(b, n, tokens, nil) },
		func(b *bench) work { return ringOfProto(b, n, tokens) },
		func(b *bench) work { return ringOfGoroutines(b, n, tokens, runtime.LockOSThread) },
	} {
		all = append(all, func() float64 {
			b := &bench{mode: b.mode}
			defer b.end()
			turn := ring(b)
			turn(n) // each member has run once
			start := time.Now()
			turn(count)
			return float64(count) / time.Since(start).Seconds()
		})
	}
	if n > mostThreads {
		b.note(fmt.Sprintf("No threads from %d on: a goroutine that is locked to its thread takes a thread of the system.", n))
		all[len(all)-1] = nil
	}
	return all
}

// besideRing compares a ring of n actors, on a scheduler that the function on starts, with a ring of n goroutines.

// besideRing compares a ring of n actors, on a scheduler that the function on starts, with a ring of n goroutines.
func besideRing(n int, on func(b *bench) suspend.Spawner, wait way) opener {
	return func(b *bench) (side, side) {
		n := b.of(n, 50)
		return b.works(ringOn(b, on(b), n, 1, wait), ringOfGoroutines(b, n, 1, nil), 1)
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

// asks sends n requests to an actor, and waits for each reply. A function for times would be one more frame after each switch.
func asks(on suspend.Spawner, n int) {
	to := actor.Spawn(bg, on, func(ctx context.Context, self *actor.Self[*getMessage]) error {
		return reacting(ctx, self, func(m *getMessage) error { m.Reply(1); return nil })
	}, actor.Options[*getMessage]{})
	for range n {
		must(actor.Ask(bg, to, new(getMessage)))
	}
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
