package actor

import (
	"context"
	"math"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// A Policy configures Restart. The zero Policy restarts at once after each failure, without a bound, but not after a panic.
type Policy struct {
	// Max is the maximum number of restarts in any period of length Within. Once Max is reached, Restart does not handle the next
	// failure. Zero means no bound. If Within is zero, the period is the life of the actor.
	Max    int
	Within time.Duration

	// Backoff returns the time to wait before the n'th restart in a period of length Within. The actor waits without a task, and
	// handles no messages. If Backoff is nil, the actor does not wait.
	Backoff func(n int) time.Duration

	// If Panics is set, Restart handles a panic like any other failure. A runtime.Goexit, as in a failed test, always ends the actor.
	Panics bool

	// OnRestart is called with the failure before each restart, in the actor's task.
	OnRestart func(err error)
}

// Restart returns a body that runs body, and runs it again after each failure, as a supervisor does. The actor keeps its Ref, its
// mailbox and its mail. At each failure, requests, OnEnd, SendAfter, Watch, Link, Stop and Kill are treated as in Catch.
//
// Each run of body, called a life, has its own context. This context is cancelled when the life fails, or when the life is done and the
// actor continues. The children of the life are then killed, and the next life begins after they have ended. A child that waits with an
// unrelated context can delay the next life.
//
// A Stop ends a Backoff. After a Stop, the next life begins without a Backoff, but only if there is mail, and if the previous life has
// received messages. Otherwise the actor ends with the failure.
func Restart[M any](p Policy, body func(ctx context.Context, self *Self[M]) error) func(ctx context.Context, self *Self[M]) error {
	if body == nil {
		panic("actor: Restart without a body")
	}
	return func(ctx context.Context, self *Self[M]) error {
		var recent []time.Time // the times of the restarts in the last period of length Within, oldest first
		n := 0                 // the number of restarts that count towards Max
		mail := math.MaxInt    // the number of messages at the stopped actor's last failure
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
			if mail == math.MaxInt && !mayGoOn() { // the actor was stopped during the wait
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

// afterStop returns the number of messages that are left, and whether the actor is stopped.
func (in *Inbox[M]) afterStop() (left int, stopped bool) {
	in.guard.Lock()
	defer in.guard.Unlock()
	return in.arrived.count + in.mail.count, in.closed
}
