package main

import (
	"context"
	"runtime"
	"time"

	"github.com/braidgo/braid/actor"
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

// bytesRow measures each side in a process of its own.
func bytesRow(id string, must_, aim float64) row {
	return row{id: id, against: "a goroutine in a channel", unit: "bytes", must: must_, aim: aim, rounds: 3, cold: true, open: func(m mode) (*sides, error) {
		n := m.of(100_000, 100)
		of := func(kind string) side {
			return func(time.Duration) (float64, error) {
				v, err := bytesOf(kind, n)()
				return v[0], err
			}
		}
		return &sides{ours: of(id), peer: of("a goroutine in a channel")}, nil
	}}
}

// idleKinds measure what an idle actor keeps alive: heap, and stack.
var idleKinds = map[string]func(n int) float64{
	"a goroutine in a channel": goroutinesInChannels,
	"actor-bytes/react-onend": idleActors(func(i int) body {
		return func(_ context.Context, self *actor.Self[int]) error {
			self.OnEnd(func() { use(1) })
			return actor.Loop(func() error { return self.React(func(m int) error { use(m + i); return nil }) })
		}
	}),
	"actor-bytes/react": idleActors(func(i int) body {
		return func(_ context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error { return self.React(func(m int) error { use(m + i); return nil }) })
		}
	}),
	"actor-bytes/receive-closure": idleActors(func(i int) body {
		return func(ctx context.Context, self *actor.Self[int]) error {
			return receiving(ctx, self, func(m int) error { use(m + i); return nil })
		}
	}),
	"actor-bytes/receive": idleActors(func(i int) body {
		return func(_ context.Context, self *actor.Self[int]) error {
			for {
				m, err := self.Receive(context.Background())
				if err != nil {
					return err
				}
				use(m + i)
			}
		}
	}),
}

type body = func(ctx context.Context, self *actor.Self[int]) error

func idleActors(make func(i int) body) func(n int) float64 {
	return func(n int) (each float64) {
		inFifo(func() {
			before := liveBytesAndStacks()
			all := []actor.Ref[int]{}
			for i := range n {
				all = append(all, actor.Spawn(context.Background(), suspend.Here(), make(i)))
				suspend.Yield()
			}
			each = float64(liveBytesAndStacks()-before) / float64(n)
			for _, r := range all {
				r.Stop()
			}
		})
		return each
	}
}

func goroutinesInChannels(n int) float64 {
	before := liveBytesAndStacks()
	all := []chan int{}
	for i := range n {
		c := make(chan int, 1)
		all = append(all, c)
		go func() {
			for m := range c {
				use(m + i)
			}
		}()
	}
	for range 100 {
		runtime.Gosched()
	}
	each := float64(liveBytesAndStacks()-before) / float64(n)
	runtime.KeepAlive(all)
	return each
}
