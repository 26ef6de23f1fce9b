package actor

import (
	"context"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Policy says how Restart goes on after failures. The zero Policy restarts at once, without end, and not after panics.
type Policy struct {
	// Max is how many restarts there may be in any period of Within; then the failure goes on. Zero: no bound. A Within of zero
	// is the life of the actor.
	Max    int
	Within time.Duration

	// Backoff returns how long to wait before the n'th restart in a period of Within. The actor waits without a task, and its
	// mail waits. Nil: not at all.
	Backoff func(n int) time.Duration

	// Panics says that a panic is a failure like others. Otherwise it goes on, as in any task.
	Panics bool

	// OnRestart is called before each restart, in the actor's task, with the failure.
	OnRestart func(err error)
}

// Restart returns a body that runs body, and runs it anew when it has failed: supervision as a wrapper. The actor is the same, with
// the same Ref, the same mailbox, and the mail that is in it. What Catch says of requests, OnEnd, Stop and Kill holds for
// each failure.
func Restart[M any](p Policy, body func(ctx context.Context, self *Self[M]) error) func(ctx context.Context, self *Self[M]) error {
	if body == nil {
		panic("actor: Restart without a body")
	}
	return func(ctx context.Context, self *Self[M]) error {
		var recent []time.Time // restarts in the last Within, the oldest first
		n := 0                 // restarts that count
		var run func() error
		again := func(err error) error {
			if p.Within > 0 {
				now := suspend.Now()
				for len(recent) > 0 && now.Sub(recent[0]) >= p.Within {
					recent = recent[1:]
				}
				n = len(recent)
				recent = append(recent, now)
			}
			if p.Max > 0 && n >= p.Max {
				return err
			}
			n++
			if p.OnRestart != nil {
				p.OnRestart(err)
			}
			if p.Backoff == nil {
				return run()
			}
			return Await(self, suspend.After(p.Backoff(n)), func(_ time.Time, err error) error {
				if err != nil {
					return err
				}
				return run()
			})
		}
		run = func() error {
			return &catch{func() error { return body(ctx, self) }, again, p.Panics}
		}
		return run()
	}
}
