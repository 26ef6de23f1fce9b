package mutex

import (
	"runtime"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// A goroutine looks at a held Mutex so many times before it waits, and counts so many steps before each look, which takes about 1.4
// microseconds. sync.Mutex looks four times at this distance. internal/testrig/cores has the reason for twice as many.
const (
	looks = 8
	steps = 4000
)

// parallel reports whether goroutines run at the same time. It is renewed before a wait, because runtime.GOMAXPROCS takes a lock.
var parallel atomic.Bool

func init() { parallel.Store(runtime.GOMAXPROCS(0) > 1) }

// spin locks m if m becomes unlocked soon, and reports whether it did. A waiter gets a processor long after the Unlock that wakes it. If many
// goroutines hold m for short times, most of them would be asleep at any time. A task does not spin, because the holder may be a task of the
// same thread.
func (m *Mutex) spin() bool {
	if suspend.Current() != nil {
		return false
	}
	if parallel.Load() {
		for range looks {
			for range steps {
			}
			if m.tryTake() {
				return true
			}
		}
	}
	parallel.Store(runtime.GOMAXPROCS(0) > 1)
	return false
}
