package stage

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// idling is the wait of a worker without work, on plain goroutines. A second later, or two, tick dismisses it.
type idling struct{ w *worker }

func (i idling) Guard() *suspend.Guard { return &i.w.p.guard }

func (i idling) Try() (wake, bool, error) {
	p := i.w.p
	switch {
	case p.running < p.width && p.next() != nil:
		p.running++
		return found, true, nil
	case p.open == 0:
		return dismissed, true, nil
	}
	return dismissed, false, nil
}

func (i idling) Enqueue(r suspend.Resumer[wake]) {
	p := i.w.p
	i.w.r = r
	p.idle = append(p.idle, i.w)
	if !p.ticking {
		p.ticking, p.least = true, len(p.idle)
		suspend.AfterFunc(p.timers, time.Second, p.tick)
	}
}

func (i idling) Remove(suspend.Resumer[wake]) {} // it is never cancelled

// tick dismisses the workers that were idle since the tick before.
func (p *Pool) tick() {
	p.guard.Lock()
	p.dismiss(min(p.least, len(p.idle)))
	p.least = len(p.idle)
	p.ticking = p.least > 0
	again := p.ticking
	p.guard.Unlock()
	if again {
		suspend.AfterFunc(p.timers, time.Second, p.tick)
	}
}

// dismiss ends the n workers that have been idle longest.
func (p *Pool) dismiss(n int) {
	for _, w := range p.idle[:n] {
		w.r.Resume(dismissed, nil)
	}
	m := copy(p.idle, p.idle[n:])
	clear(p.idle[m:])
	p.idle = p.idle[:m]
}
