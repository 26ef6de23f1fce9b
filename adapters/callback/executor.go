package callback

import (
	"context"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// OnExecutor runs f as a callback directly on the executor's own goroutine, for toolkits that check the identity of the
// calling goroutine. It suspends the caller until f has returned. f must not suspend. The caller may be a task of any
// scheduler, or a goroutine, but not the executor's goroutine.
//
// If the executor refuses f, OnExecutor returns the executor's error, and f never runs. If ctx ends before f has begun,
// OnExecutor returns the cancellation error, and f never runs. After f has begun, OnExecutor waits for it. If f panics,
// OnExecutor panics with the same value. If f calls runtime.Goexit, the caller exits, too.
func (l *Loop) OnExecutor(ctx context.Context, f func()) error {
	if f == nil {
		panic("callback: nil function")
	}
	if suspend.Forbidden() {
		suspend.Self() // Self panics here
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	c := &call{f: f}
	if l.direct {
		c.post(l.exec)
	} else {
		l.start(func() { c.post(l.exec) }) // Execute may block, or take a lock
	}
	settled := false
	defer func() {
		if !settled { // a method of ctx has panicked
			c.giveUpOrWait(nil)
		}
	}()
	_, err := suspend.Wait[struct{}](ctx, c)
	settled = true
	if err != nil && c.giveUpOrWait(err) {
		return err
	}
	c.ended.Rethrow()
	return c.err
}

// giveUpOrWait handles a cancelled wait. It abandons f and returns true if f has not begun; otherwise it waits until f has
// ended.
func (c *call) giveUpOrWait(err error) (abandoned bool) {
	if c.abandon(err) {
		return true
	}
	_, _ = suspend.Wait[struct{}](context.Background(), c)
	return false
}

// A call is a function f that is submitted to the executor. It is a suspend.Source that is ready when the call is over.
//
//	waiting -executor> begun -executor> over
//	waiting -caller>   over: f was abandoned and never runs
//	waiting -executor> over: the executor refused f
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

// abandon ends the call with err and returns true, unless f has begun or the call is over.
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
