package callback

import (
	"context"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// OnExecutor runs f on the executor's own goroutine, as a callback that is none of the Loop's: for a toolkit that looks
// at the identity of the calling goroutine. It suspends the caller. f must not suspend. The caller may be a task of any
// scheduler, or a goroutine, but not the executor's.
//
// If the executor refuses f, OnExecutor returns that error, and f never runs. If ctx is done before f has begun, or
// already, it returns the cancellation error, and f never runs; once begun, f is waited for. A panic of f is raised in
// the caller with the same value. A runtime.Goexit in f ends both.
func (l *Loop) OnExecutor(ctx context.Context, f func()) error {
	if f == nil {
		panic("callback: nil function")
	}
	if suspend.Forbidden() {
		suspend.Self() // panics
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	c := &call{f: f}
	if l.direct {
		c.post(l.exec)
	} else {
		l.start(func() { c.post(l.exec) }) // it may block, or take a lock
	}
	settled := false
	defer func() {
		if !settled { // ctx has panicked
			c.giveUpOrWait(nil)
		}
	}()
	_, err := suspend.Wait[struct{}](ctx, c, false)
	settled = true
	if err != nil && c.giveUpOrWait(err) {
		return err
	}
	c.ended.Rethrow()
	return c.err
}

// giveUpOrWait is the end of a wait that was cancelled: f never runs, or else it is waited for.
func (c *call) giveUpOrWait(err error) (abandoned bool) {
	if c.abandon(err) {
		return true
	}
	_, _ = suspend.Wait[struct{}](context.Background(), c, false)
	return false
}

// A call is one f on its way through the executor. It is the suspend.Source of its end.
//
//	waiting -executor> begun -executor> over
//	waiting -caller>   over: f never runs
//	waiting -executor> over: f was refused
type call struct {
	f func()

	guard   suspend.Guard
	begun   bool
	over    bool
	err     error
	ended   outcome.Outcome
	waiters suspend.Queue[struct{}, struct{}]
}

func (c *call) post(exec suspend.Executor) {
	if err := exec.Execute(c.run); err != nil {
		c.abandon(err)
	}
}

func (c *call) run() {
	c.guard.Lock()
	begin := !c.over && !c.begun
	c.begun = true
	c.guard.Unlock()
	if begin {
		outcome.Of(c.f, func(o outcome.Outcome) {
			c.guard.Lock()
			c.ended = o
			c.endLocked(nil)
			c.guard.Unlock()
		})
	}
}

// abandon reports whether f had not begun, and never will.
func (c *call) abandon(err error) bool {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.begun || c.over {
		return false
	}
	c.endLocked(err)
	return true
}

func (c *call) endLocked(err error) {
	c.over, c.err = true, err
	c.waiters.ResumeAll(struct{}{}, nil)
}

func (c *call) Guard() *suspend.Guard                    { return &c.guard }
func (c *call) Try() (none struct{}, ok bool, err error) { return none, c.over, nil }
func (c *call) Enqueue(r suspend.Resumer[struct{}])      { c.waiters.Push(r, struct{}{}) }
func (c *call) Remove(r suspend.Resumer[struct{}])       { c.waiters.Remove(r) }
