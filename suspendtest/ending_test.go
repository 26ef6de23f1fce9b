package suspendtest_test

import (
	"sync"
	"testing"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// endable is an executor on one goroutine that ends while it is in use. After that it returns refusal. If refusal is nil, it
// accepts functions without running them.
type endable struct {
	refusal error

	mu    sync.Mutex
	queue []func()
	more  sync.Cond
	over  bool
}

func newEndable(refusal error) *endable {
	x := &endable{refusal: refusal}
	x.more.L = &x.mu
	go func() {
		for {
			x.mu.Lock()
			for len(x.queue) == 0 && !x.over {
				x.more.Wait()
			}
			if x.over {
				x.mu.Unlock()
				return
			}
			f := x.queue[0]
			x.queue = x.queue[1:]
			x.mu.Unlock()
			f()
		}
	}()
	return x
}

func (x *endable) Execute(f func()) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return x.refusal
	}
	x.queue = append(x.queue, f)
	x.more.Signal()
	return nil
}

func (x *endable) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.more.Signal()
}

func openEndable(refusal error) suspendtest.OpenEnding {
	return func(testing.TB) (suspend.Spawner, func(), func()) {
		x := newEndable(refusal)
		l := callback.New(x, callback.Options{StallAfter: -1})
		return l, x.stop, func() { _ = l.Close(); x.stop() }
	}
}

func TestEnding(t *testing.T) {
	suspendtest.Ending(t, openEndable(suspend.ErrClosed))
}
