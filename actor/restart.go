package actor

import (
	"context"
	"math"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
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

	// Panics says that a panic is a failure like others. Otherwise it goes on, as in any task. A runtime.Goexit, as of a failed
	// test, is no failure: it ends the actor.
	Panics bool

	// OnRestart is called before each restart, in the actor's task, with the failure.
	OnRestart func(err error)
}

// Restart returns a body that runs body, and runs it anew when it has failed: supervision as a wrapper. The actor is the same, with
// the same Ref, the same mailbox, and the mail that is in it. What Catch says of requests, OnEnd, SendAfter, Watch, Link, Stop and Kill
// holds for each failure.
//
// Each life has its own context, which is cancelled when the life has failed, or is done and the actor goes on. So the children of a
// failed life are killed, and the next life begins when they have ended. A child that waits with a context of another origin can delay that.
//
// A Stop ends a Backoff. From then on a life begins at once, but only if there is mail and the life before it has received some.
// Otherwise the actor ends with the failure.
func Restart[M any](p Policy, body func(ctx context.Context, self *Self[M]) error) func(ctx context.Context, self *Self[M]) error {
	if body == nil {
		panic("actor: Restart without a body")
	}
	return func(ctx context.Context, self *Self[M]) error {
		var recent []time.Time // restarts in the last Within, the oldest first
		n := 0                 // restarts that count
		mail := math.MaxInt    // messages of the stopped actor, when a life failed last
		mayGoOn := func() bool {
			left, stopped := self.afterStop()
			less := left < mail
			if stopped {
				mail = left
			}
			return !stopped || left > 0 && less
		}
		var again func(err error) error
		life := func() error {
			return &catch{first: func() error {
				c, end := cancelctx.New(ctx, watching.Here), new(leaving)
				self.leave(end, func() { c.Cancel(nil) })
				return AndThen(body(c, self), func() error {
					if _, stopped := self.afterStop(); !stopped && self.take(end) { // otherwise the end of the actor stops the children
						c.Cancel(nil)
					}
					return nil
				})
			}, h: again, panics: p.Panics}
		}
		next := func(err error) error {
			if err := self.outliveKilled(); err != nil {
				return err
			}
			if mail == math.MaxInt && !mayGoOn() { // stopped during the wait
				return err
			}
			return life()
		}
		again = func(err error) error {
			if !mayGoOn() {
				return err
			}
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
			if p.Backoff == nil || mail < math.MaxInt {
				return next(err)
			}
			over := suspend.Map(suspend.After(p.Backoff(n)), func(time.Time, error) (none struct{}, err error) { return none, err })
			stopped := suspend.OpOf[struct{}]((*stopping)(&self.life))
			return Await(self, suspend.Choose(over, stopped), func(_ struct{}, cancelled error) error {
				if cancelled != nil {
					return cancelled
				}
				if !mayGoOn() {
					return err
				}
				return next(err)
			})
		}
		return life()
	}
}

// afterStop returns how many messages are left, and whether the actor is stopped.
func (in *Inbox[M]) afterStop() (left int, stopped bool) {
	in.guard.Lock()
	defer in.guard.Unlock()
	return in.arrived.count + in.mail.count, in.closed
}
