package stage

import (
	"reflect"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// NewPool returns a pool of the given width, which must be at least 1. The parameter on is the scheduler on which the workers run;
// nil means plain goroutines.
func NewPool(name string, width int, on suspend.Spawner) *Pool {
	if width < 1 {
		panic("stage: a pool without a width")
	}
	if on == nil {
		on = suspend.Goroutines
	}
	comparable := reflect.ValueOf(on).Comparable()
	p := &Pool{name: name, on: on, inline: comparable, linger: comparable && on == suspend.Goroutines, width: width}
	if c, ok := suspend.As[sched.Clock](on); ok {
		p.clock, p.timers = c, on
	}
	return p
}

// SetWidth sets the maximum number of running handlers to n. Handlers that already run above the new width are not interrupted.
func (p *Pool) SetWidth(n int) {
	if n < 1 {
		panic("stage: a pool without a width")
	}
	p.guard.Lock()
	p.width = n
	p.release()
}
