//go:build !linux || braid_portable

package eventloop

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A poller lists the open descriptors, and has a channel on which its reactor sleeps.
type poller struct {
	woken chan struct{} // a buffered element is a pending wake

	mu     atomicx.Mutex
	fds    map[*fd]struct{}
	closed bool
	deaf   bool // closeListeners was called
}

func newPoller() (*poller, error) {
	return &poller{woken: make(chan struct{}, 1), fds: make(map[*fd]struct{})}, nil
}

func (p *poller) hold()      {}
func (p *poller) dropRef()   {}
func (p *poller) poll() bool { return false }
func (p *poller) dispatch()  {}
func (p *poller) close()     {}

func (p *poller) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (p *poller) wait(d time.Duration) {
	if d < 0 {
		<-p.woken
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.woken:
	case <-timer.C:
	}
}

func (p *poller) add(d *fd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.deaf && d.over != nil {
		return errClosed
	}
	p.fds[d] = struct{}{}
	return nil
}

func (p *poller) remove(d *fd) {
	p.mu.Lock()
	delete(p.fds, d)
	p.mu.Unlock()
}

func (p *poller) closeAll() {
	p.mu.Lock()
	p.closed = true
	p.closeThose(func(*fd) bool { return true })
}

func (p *poller) closeListeners() {
	p.mu.Lock()
	p.deaf = true
	p.closeThose(func(d *fd) bool { return d.over != nil })
}

func (p *poller) closeThose(match func(d *fd) bool) {
	var open []*fd
	for d := range p.fds {
		if match(d) {
			open = append(open, d)
		}
	}
	p.mu.Unlock()
	for _, d := range open {
		_ = d.close()
	}
}
