package stage

import (
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// queued adds n, which may be negative, to the number of queued tasks.
func (c *core) queued(n int) {
	c.waiting += n
	c.pool.waiting += n
}

// postponed adds n, which may be negative, to the number of delayed tasks.
func (c *core) postponed(n int) {
	c.delayed += n
	c.pool.delayed += n
}

// room reports whether there is room for another task. Lent tasks need no room and do not count.
func (c *core) room() bool { return c.inside()-min(c.lent, c.taken) < c.bound() }

func (c *core) bound() int { return c.o.Queue + c.width*max(1, c.o.Batch) }

// admits reports whether t may enter the queue, because there is room or because t needs no room.
func (c *core) admits(t *task) bool { return c.room() || c.needsNone(t) }

// needsNone reports whether t needs no room, because a handler of the stage waits for it. Each handler waits for one task only. If
// as many tasks are lent as there are handlers, the Dos of some were cancelled, and t needs room until these tasks leave the stage.
func (c *core) needsNone(t *task) bool { return c.lent < c.taken && c.lends(t) }

// lends reports whether a handler of c waits for t, directly or through a chain of Dos. If so, t begins in the slot of that handler;
// otherwise the handler would wait for itself.
func (c *core) lends(t *task) bool { return t.asked != nil && c.lendsByChain(t) }

func (c *core) lendsByChain(t *task) bool {
	for t.asked != nil && !t.gone.Load() {
		if t.asked.from == c {
			return true
		}
		t = t.parent
	}
	all, ok := t.values.(several)
	return ok && all.lends(c)
}

// The type several is the interface of the base context of a batch, which belongs to several tasks.
type several interface {
	lends(c *core) bool
	has(t *task) bool
}

// list adds c to the list of its pool. c.unlist removes c later: p.nextStage calls unlist when c has no queued task, and c.gone calls it
// when c is closed and empty.
func (c *core) list() {
	p := c.pool
	c.listed, c.index = true, len(p.loaded)
	p.loaded = append(p.loaded, c)
}

func (c *core) unlist() {
	p := c.pool
	last := len(p.loaded) - 1
	p.loaded[c.index] = p.loaded[last]
	p.loaded[c.index].index = c.index
	p.loaded[last] = nil
	p.loaded = p.loaded[:last]
	c.listed = false
}

func (g *entrance[In, Out]) put(ctx context.Context, t *task, in In, h how, from *core) error {
	s := g.s
	p := s.pool
	now := p.now()
	s.rank(t, in)
	p.guard.Lock()
	// Step 4 of a task, see do.go.
	switch {
	case s.closed:
		err := s.refuse(s.errs.closed)
		p.guard.Unlock()
		return err
	case s.admits(t):
		if h == always { // t comes from the previous stage, and its Do already waits
			p.suspect(t.asked)
		}
		s.accept(g, t, in, now)
		p.unlockAndPay()
		return nil
	case (h == never || h == asFull && s.o.Reject) && !s.lends(t):
		if e, ok := s.displace(t); ok {
			s.accept(g, t, in, now)
			p.unlockAndPay()
			s.giveUpInTask(e, verdict{fate: late, err: s.errs.displaced})
			return nil
		}
		return s.reject()
	}
	p.guard.Unlock()
	var a *asking
	if from != nil {
		a = &asking{from: from, task: t, ctx: ctx}
		ctx, a.stop = cancel.New(ctx)
		defer a.stop(nil)
		a.moved(&s.core)
		from.block(a)
		defer from.goOn(a)
	}
	_, err := suspend.Wait[struct{}](ctx, outsider[In, Out]{g, t, in, a})
	p.guard.Lock()
	p.unlockAndPay() // Try may have accepted t, which may need a worker
	return err
}

// rank sets the priority of t. The caller must not hold the guard, because rank calls the user's function.
func (s *Stage[In, Out]) rank(t *task, in In) {
	if s.priority != nil {
		t.level = uint8(min(max(s.priority(in), 0), levels-1))
	}
}

// accept puts t in the queue. The caller must hold the guard.
func (s *Stage[In, Out]) accept(way *entrance[In, Out], t *task, in In, now int64) {
	// Step 5.
	s.arrived++
	s.accepted++
	t.tries = 0
	if t.asked != nil {
		t.asked.moved(&s.core)
	}
	to, ticket := &s.hurry, uint64(lent)
	if s.lends(t) {
		s.lent++
	} else {
		to = s.line(t)
		s.pool.tickets++
		ticket = s.pool.tickets
	}
	e := to.back()
	e.t, e.way, e.in, e.since, e.ticket = t, way, in, now, ticket
	s.queued(1)
	if !s.listed {
		s.list()
	}
	if s.held {
		s.letBegin()
	}
}

// reject counts a rejection. The caller must hold s.pool.guard, and reject unlocks it before it returns.
func (s *Stage[In, Out]) reject() error {
	var gone []item[In, Out]
	if s.crowded.Store(true); s.sweepDue() {
		gone = s.sweep(s.pool.now())
	}
	err := s.refuse(s.errs.full)
	s.pool.unlockAndPay()
	for _, e := range gone {
		e.t.ends(suspend.Err(e.t))
	}
	return err
}

// refuse counts a rejection, and returns err.
func (c *core) refuse(err error) error {
	c.arrived++
	c.rejected++
	return err
}

// nextStage returns the stage to serve, or nil if no task can begin or too many workers run.
func (p *Pool) nextStage() (best *core) {
	if p.running > p.width || p.waiting == 0 {
		return nil
	}
	for i := 0; i < len(p.loaded); i++ {
		switch c := p.loaded[i]; {
		case c.waiting == 0:
			c.unlist()
			i--
		case c.free() > 0 && (best == nil || c.server.oldest() < best.server.oldest()):
			best = c
		}
	}
	return best
}

// free returns the number of slots that are free for handlers. A handler that waits for a task of its own stage lends its slot to
// that task, so that at most width handlers run at a time, not counting waiting handlers. While the task is delayed, no other task
// gets the slot.
func (c *core) free() int {
	if c.held {
		return 0
	}
	return c.width - c.taken + min(c.lent-c.lentLater, c.blocked)
}

func (s *Stage[In, Out]) oldest() uint64 {
	if s.hurry.len > 0 {
		return lent
	}
	return s.first().of(0).ticket
}

// line returns the ring in which t waits.
func (s *Stage[In, Out]) line(t *task) *ring[item[In, Out]] { return s.lineOf(int(t.level)) }

func (s *Stage[In, Out]) lineOf(level int) *ring[item[In, Out]] {
	if s.urgent == nil || level == 0 {
		return &s.ring
	}
	return &s.urgent[level-1]
}

// first returns the ring of the task that begins next.
func (s *Stage[In, Out]) first() *ring[item[In, Out]] {
	if s.hurry.len > 0 {
		return &s.hurry
	}
	for level := len(s.urgent); level > 0; level-- {
		if r := s.lineOf(level); r.len > 0 {
			return r
		}
	}
	return &s.ring
}

// levels is the number of priorities.
const levels = 4

// take takes the next task off the queue, and a slot, for w, and reports whether the task has waited too long. The caller must hold the
// guard, and take unlocks it.
func (s *Stage[In, Out]) take(w *worker, e *item[In, Out]) (isLate bool) {
	s.pop(e)
	s.taken++
	s.progress++
	isLate = s.begun(e.since, w.now)
	w.at, w.task = &s.core, e.t
	s.pool.unlockAndPay()
	return isLate
}

// pop removes the next task from the queue and stores it in e.
func (s *Stage[In, Out]) pop(e *item[In, Out]) {
	s.queued(-1)
	if r := s.first(); s.o.LIFO && r != &s.hurry {
		r.popBack(e)
	} else {
		r.popFront(e)
	}
	e.left()
}

// begun counts a task that has left the queue, and reports whether the task has waited too long.
func (c *core) begun(since, now int64) (late bool) {
	wait := max(0, now-since)
	c.window.least = min(c.window.least, c.waiting)
	if c.shed.target != 0 && c.shed.late(wait, now) {
		return true
	}
	c.wait.add(wait)
	return false
}
