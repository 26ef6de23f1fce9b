package eventloop

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// A pause is the suspend.Source of an Accept's wait after a shortage. The wait ends when its time has passed or the
// Listener is closed.
type pause struct {
	ln   *Listener
	over bool // the time has passed; guarded by ln.guard
}

// pause suspends the caller for d, or until the Listener is closed or a context is done.
func (ln *Listener) pause(cs contexts, d time.Duration) error {
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	p := &pause{ln: ln}
	ts := &ln.loop.reactors[0].timers
	t := newTimer(p.expire)
	ts.set(t, ts.after(d))
	_, err := suspend.Wait[struct{}](ctx, p)
	ts.stop(t)
	if err != nil {
		return cs.explain(err)
	}
	return nil
}

// expire is called by the timer. The other pauses of the Listener also end, and their Accepts try again early.
func (p *pause) expire() {
	p.ln.guard.Lock()
	p.over = true
	p.ln.pauses.ResumeAll(struct{}{}, nil)
	p.ln.guard.Unlock()
}

func (p *pause) Guard() *suspend.Guard                    { return &p.ln.guard }
func (p *pause) Try() (none struct{}, ok bool, err error) { return none, p.over || p.ln.closed, nil }
func (p *pause) Enqueue(r suspend.Resumer[struct{}])      { p.ln.pauses.Push(r, struct{}{}) }
func (p *pause) Remove(r suspend.Resumer[struct{}])       { p.ln.pauses.Remove(r) }
