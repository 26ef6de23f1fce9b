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

	// If Panics is set, Restart handles a panic like any other failure, also a panic of a function of OnEnd after a failure. A panic of
	// Backoff or OnRestart is then a failure that this Restart does not handle, so that the panic does not reach the scheduler. A
	// runtime.Goexit, as in a failed test, always ends the actor.
	Panics bool

	// OnRestart is called with the failure before each restart, in the actor's task.
	OnRestart func(err error)
}

// Restart returns a body that runs body, and runs it again after each failure, as a supervisor does. The actor keeps its Ref, its
// mailbox and its mail. At each failure, requests, OnEnd, SendAfter, Watch, Link, Stop and Kill are treated as in Catch.
//
// Each run of body, called a life, has its own context. This context is cancelled when the life fails, or when the life is done and the
// actor continues. The children of the life are then killed, and the next life begins after they and all their descendants have ended. A
// descendant that waits with an unrelated context can delay the next life.
//
// A Stop ends a Backoff. After a Stop, the next life begins without a Backoff, but only if there is mail, and if the previous life has
// received messages. Otherwise the actor ends with the failure.
func Restart[M any](p Policy, body func(ctx context.Context, self *Self[M]) error) func(ctx context.Context, self *Self[M]) error {
	if body == nil {
		panic("actor: Restart with a nil body")
	}
	return func(ctx context.Context, self *Self[M]) error {
		r := &restarts{Policy: p, self: &self.life, ctx: ctx, mail: math.MaxInt}
		r.body = func(ctx context.Context) error { return body(ctx, self) }
		return r.life()
	}
}

// A restarts is a Restart around the body of one actor.
type restarts struct {
	Policy
	self   *life
	ctx    context.Context
	body   func(ctx context.Context) error
	recent []time.Time // the times of the restarts in the last period of length Within, oldest first
	n      int         // the number of restarts that count towards Max
	mail   int         // the number of messages at the stopped actor's last failure
}

// life returns a Next that runs the body with a context of its own.
func (r *restarts) life() error {
	return &catch{first: func() error {
		c, end := cancelctx.New(r.ctx, watching.Here), new(undo)
		r.self.pushUndo(end, func() { c.Cancel(nil) })
		return AndThen(r.body(c), func() error {
			if _, stopped := r.self.afterStop(); !stopped && r.self.removeUndo(end) { // otherwise the end of the actor stops the children
				c.Cancel(nil)
			}
			return nil
		})
	}, h: r.again, panics: r.Panics}
}

// again is called after each failure.
func (r *restarts) again(err error) error {
	if !r.mayGoOn() {
		return err
	}
	if r.Within > 0 {
		now := suspend.Now()
		for len(r.recent) > 0 && now.Sub(r.recent[0]) >= r.Within {
			r.recent = r.recent[1:]
		}
		r.n = len(r.recent)
		r.recent = append(r.recent, now)
	}
	if r.Max > 0 && r.n >= r.Max {
		return err
	}
	r.n++
	if r.OnRestart != nil {
		if failed := r.callPolicy(func() { r.OnRestart(err) }); failed != nil {
			return &cleanupError{failed, err}
		}
	}
	if r.Backoff == nil || r.mail < math.MaxInt {
		return r.nextLife(err)
	}
	var wait time.Duration
	if failed := r.callPolicy(func() { wait = r.Backoff(r.n) }); failed != nil {
		return &cleanupError{failed, err}
	}
	over := suspend.Map(suspend.After(wait), func(time.Time, error) (none struct{}, err error) { return none, err })
	stopped := suspend.OpOf[struct{}]((*stopping)(r.self))
	return &await[struct{}]{suspend.Choose(over, stopped), func(_ struct{}, cancelled error) error {
		if cancelled != nil {
			return cancelled
		}
		if !r.mayGoOn() {
			return err
		}
		return r.nextLife(err)
	}}
}

// callPolicy calls f, a function of the Policy. If Panics is set, call returns a panic of f as an error, which is not a failure of the body:
// Restart does not handle it, since f would be called again. A runtime.Goexit goes on.
func (r *restarts) callPolicy(f func()) (failed error) {
	if r.Panics {
		defer func() {
			if v := recover(); v != nil {
				failed = newPanicked(v)
			}
		}()
	}
	f()
	return nil
}

// nextLife begins another life after the children of the failed one have ended.
func (r *restarts) nextLife(failure error) error {
	if err := r.self.outliveKilled(); err != nil {
		return err
	}
	if r.mail == math.MaxInt && !r.mayGoOn() { // the actor was stopped during the wait
		return failure
	}
	return r.life()
}

// mayGoOn reports whether the actor is not stopped, or has received messages since its last failure and has more of them.
func (r *restarts) mayGoOn() bool {
	left, stopped := r.self.afterStop()
	less := left < r.mail
	if stopped {
		r.mail = left
	}
	return !stopped || left > 0 && less
}

// afterStop returns the number of messages that are left, and whether the actor is stopped.
func (l *life) afterStop() (left int, stopped bool) {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.box.countLocked(), l.closed
}
