package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
)

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
