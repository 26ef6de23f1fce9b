package main

import (
	"context"
	"runtime"
	"time"

	"github.com/braidgo/braid/actor"
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
		onPool("actor-pingpong/pool", "two goroutines, channels of one", 0.80, 0.45, func(p *workstealing.Pool) (ours, peer func(int)) {
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
			return ringSides(m.of(600_000, 50), fifoRing, reacting)
		}},
		{id: "actor-ring/600k-pool", against: "600,000 goroutines, channels of one", unit: "ns", must: 0.45, aim: 0.25, rounds: 6, open: func(m mode) (*sides, error) {
			return ringSides(m.of(600_000, 50), poolRing, reacting)
		}},
		{id: "actor-ring/receive", against: "100,000 goroutines, channels of one", unit: "ns", must: 1.2, aim: 1.0, rounds: 6, open: func(m mode) (*sides, error) {
			return ringSides(m.of(100_000, 50), fifoRing, receiving)
		}},
		{id: "actor-ring/receive-pool", against: "100,000 goroutines, channels of one", unit: "ns", must: 1.2, aim: 1.0, rounds: 6, open: func(m mode) (*sides, error) {
			return ringSides(m.of(100_000, 50), poolRing, receiving)
		}},
		{id: "actor-ring/flat", against: "the same in a ring of 1000", unit: "ns", must: 2.5, aim: 1.5, rounds: 6, open: func(m mode) (*sides, error) {
			large, closeLarge := fifoRing(m.of(600_000, 50), reacting)
			small, closeSmall := fifoRing(m.of(1000, 10), reacting)
			return &sides{ours: timed(large), peer: timed(small), close: func() { closeLarge(); closeSmall() }}, nil
		}},
	},
	// A message is an operation: one actor receives what goroutines send.
	[]row{floodRow(1, 0.7, 0.35), floodRow(8, 0.6, 0.35)},
	// Start, one message, end. The task that starts them is on their scheduler, as the goroutine of the peer is.
	[]row{
		pair("actor-spawn/fifo", "go + channel", 1.3, 0.7, func() (ours, peer func(int)) {
			return func(n int) { inFifo(func() { spawnActors(suspend.Here(), n) }) }, spawnWithChannel
		}),
		onPool("actor-spawn/pool", "go + channel", 1.9, 0.7, func(p *workstealing.Pool) (ours, peer func(int)) {
			return func(n int) { inPool(p, func() { spawnActors(p, n) }) }, spawnWithChannel
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
		bytesRow("actor-bytes/react-onend", 0.20, 0.15),
		bytesRow("actor-bytes/react", 0.18, 0.15),
		bytesRow("actor-bytes/receive-closure", 1.5, 1.25),
		bytesRow("actor-bytes/receive", 1.5, 1.25),
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

// inPool runs f as a task of p.
func inPool(p *workstealing.Pool, f func()) {
	var done promise.Promise[int]
	must(0, p.Go(func() { f(); must(0, done.Fill(1)) }))
	must(done.Await(context.Background()))
}
