package scope

import (
	"cmp"
	"context"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// On returns a Spawner that uses on, or plain goroutines if on is nil, to start tasks as children of s. Unlike s.Go, it starts
// tasks even after s was cancelled, and returns the error if on refuses a task, which is then no failure of s. After s has
// ended, its Go returns an error that is suspend.ErrEnded and suspend.ErrClosed. The Spawner is a sched.Holder: its Hold adds
// a member without a task to s, so that Run does not return before release is called.
func (s *Scope) On(on suspend.Spawner) suspend.Spawner {
	return &spawner{s, cmp.Or(on, suspend.Goroutines)}
}

type spawner struct {
	s  *Scope
	on suspend.Spawner
}

func (o *spawner) Go(f func()) error { return o.enter(nil, f) }

// GoUntil implements sched.Withdrawer.
func (o *spawner) GoUntil(ctx context.Context, f, withdrawn func()) error {
	return o.enter(&guest{o.s, ctx, withdrawn}, f)
}

func (o *spawner) enter(of origin, f func()) error {
	check(f != nil)
	suspend.Point()
	if !o.s.addMember() {
		return errEnded
	}
	started := false
	defer func() {
		if !started { // also if o.on has panicked
			o.s.removeMember()
		}
	}()
	err := o.s.start(of, o.on, func() {
		o.s.member(func() error {
			f()
			return nil
		})
	})
	started = err == nil
	return err
}

// A guest is the origin of a function that is also a member of s. Its withdrawal must end the membership.
type guest struct {
	s   *Scope
	ctx context.Context
	f   func()
}

func (g *guest) context() context.Context { return g.ctx }

func (g *guest) withdrawn() {
	g.s.removeMember()
	g.f()
}

// Unwrap returns o.on, for suspend.As.
func (o *spawner) Unwrap() suspend.Spawner { return o.on }

// Hold holds the scope, and also the scheduler if the scheduler is a Holder.
func (o *spawner) Hold() (release func(), err error) {
	suspend.Point()
	if !o.s.addMember() {
		return nil, errEnded
	}
	h, ok := suspend.As[sched.Holder](o.on)
	if !ok {
		return o.s.removeMember, nil
	}
	inner, err := h.Hold()
	if err != nil {
		o.s.removeMember()
		return nil, err
	}
	return func() { inner(); o.s.removeMember() }, nil
}
