package stage

import (
	"context"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

const paceSlack = int64(10 * time.Millisecond)

func (p *pace) set(o Options) {
	if o.Rate > 0 {
		p.every = max(1, int64(min(float64(time.Second)/o.Rate, float64(1<<62))))
		p.slack = max(0, paceSlack-p.every)
		if o.Burst > 0 {
			p.slack = int64(o.Burst-1) * p.every
		}
	}
}

func (p *pace) advance(now int64) {
	if p.every > 0 {
		if !p.started || p.next < now-p.slack {
			p.started, p.next = true, now-p.slack
		}
		p.next += p.every
	}
}

// notPaced undoes the call of pace.advance for a handler that does not run, so that its task does not count for Options.Rate.
func (c *core) notPaced() {
	if c.pace.every > 0 {
		c.pool.guard.Lock()
		c.pace.next -= c.pace.every
		c.holder.ResumeAll(struct{}{}, nil) // the next handler may begin earlier now
		c.pool.guard.Unlock()
	}
}

// early returns how long the next handler must still wait. The result paced takes only Rate into account, and the result wait takes
// Rate and Gather into account.
func (s *Stage[In, Out]) early(now int64) (paced, wait int64) {
	if s.pace.every > 0 && s.pace.started {
		paced = s.pace.next - now
	}
	wait = paced
	if s.gathers() && s.waiting > 0 {
		wait = max(wait, s.first().of(0).since+int64(s.o.Gather)-now)
	}
	return paced, wait
}

// gathers reports whether the next batch waits for more tasks. A batch does not wait while a handler waits for a lent task.
func (c *core) gathers() bool {
	return c.o.Gather > 0 && c.o.Batch > 0 && !c.closed && c.lent == 0 && c.waiting < c.o.Batch
}

// holds returns true, after a wait, if it is too early for the next handler. The caller must then choose a task again, because
// another task may be first by then. Otherwise holds counts the handler, which begins now, and returns false. The caller must hold
// the guard, which is held again when holds returns.
func (s *Stage[In, Out]) holds(w *worker) bool {
	if !s.ripe {
		if paced, wait := s.early(w.now); wait > 0 {
			s.gathering = wait > paced
			s.hold(w, wait)
			return true
		}
	}
	s.ripe = false
	s.pace.advance(w.now)
	return false
}

// hold keeps the stage from beginning tasks, for wait nanoseconds. The worker waits without a permit, so that other stages can use
// the permit. The caller must hold the guard, which is held again when hold returns.
func (c *core) hold(w *worker, wait int64) {
	p, next := c.pool, c.pace.next
	c.held = true
	w.at, w.task = nil, nil
	p.running--
	p.unlockAndPay()
	w.owed.pay()
	ctx, stop := cancel.WithTimeout(context.Background(), time.Duration(wait))
	_, err := suspend.Wait[struct{}](ctx, holding{c, next})
	stop()
	p.guard.Lock()
	c.held = false
	c.lose()
	c.ripe = err != nil && c.waiting > 0
	p.running++
	w.now = p.now()
}

// letBegin ends a hold that is no longer needed.
func (c *core) letBegin() {
	if c.held && c.mayBegin() {
		c.holder.ResumeAll(struct{}{}, nil)
	}
}

// mayBegin reports whether a hold must end early. A hold for Rate ends early only if a Close cuts the stage off.
func (c *core) mayBegin() bool { return c.cut || c.gathering && !c.gathers() }

// A holding is the Source with which core.hold waits.
type holding struct {
	c    *core
	next int64 // the value of pace.next when the wait began
}

func (h holding) Guard() *suspend.Guard { return &h.c.pool.guard }
func (h holding) Try() (none struct{}, ok bool, err error) {
	return none, h.c.mayBegin() || h.c.pace.next < h.next, nil
}
func (h holding) Enqueue(r suspend.Resumer[struct{}]) { h.c.holder.Push(r, struct{}{}) }
func (h holding) Remove(r suspend.Resumer[struct{}])  { h.c.holder.Remove(r) }
