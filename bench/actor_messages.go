package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

type way func(ctx context.Context, self *actor.Self[int], f func(int) error) error

func reacting(_ context.Context, self *actor.Self[int], f func(int) error) error {
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

func pingPong(on suspend.Spawner, n int, wait way) {
	ctx := context.Background()
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

func ringSides(n int, ring func(n int, wait way) (passes func(int), stop func()), wait way) (*sides, error) {
	ours, stop := ring(n, wait)
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
func fifoRing(n int, wait way) (passes func(int), stop func()) {
	s := fifo.New(fifo.Options{})
	var over promise.Promise[int]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		must(0, s.Run(context.Background(), func(ctx context.Context) error { _, err := over.Await(ctx); return err }))
	}()
	passes, stopActors := ringOn(s, n, wait)
	return passes, func() { stopActors(); must(0, over.Fill(1)); <-ended }
}

func poolRing(n int, wait way) (passes func(int), stop func()) {
	p := workstealing.New(workstealing.Options{Workers: 2})
	passes, stopActors := ringOn(p, n, wait)
	return passes, func() { stopActors(); must(0, p.Close()) }
}

func ringOn(on suspend.Spawner, n int, wait way) (passes func(int), stop func()) {
	refs := make([]actor.Ref[int], n)
	done := make(chan struct{}, 1)
	for i := range refs {
		refs[i] = actor.Spawn(context.Background(), on, func(ctx context.Context, self *actor.Self[int]) error {
			return wait(ctx, self, func(left int) error {
				if left == 0 {
					done <- struct{}{}
					return nil
				}
				return refs[(i+1)%n].Send(left - 1)
			})
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
