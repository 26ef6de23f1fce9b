package stm_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A crowd is the Executor of waiters. A commit calls Execute in the critical section in which it resumes a waiter.
type crowd struct {
	begun   sync.Once
	first   chan struct{} // closed by the first call
	mu      sync.Mutex
	resumed []func()
}

func (c *crowd) Execute(f func()) error {
	c.mu.Lock()
	c.resumed = append(c.resumed, f)
	c.mu.Unlock()
	c.begun.Do(func() { close(c.first) })
	runtime.Gosched() // lets the other commit begin
	return nil
}

func (c *crowd) take() []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	fs := c.resumed
	c.resumed = nil
	return fs
}

// A commit that resumes 10,000 waiters takes milliseconds. Another commit can complete meanwhile.
func TestACommitOfACrowdLetsOthersCommit(t *testing.T) {
	const n = 10_000
	least := n
	for range 30 { // repeats, because a busy machine may run the other commit late
		c := &crowd{first: make(chan struct{})}
		var gate, other stm.Var[int]
		passed := 0
		for range n {
			suspend.Then(bg, stm.Op(func(tx *stm.Tx) (int, error) {
				if gate.Get(tx) == 0 {
					return 0, stm.Retry
				}
				return 0, nil
			}), c, func(int, error) { passed++ })
		}
		require.Equal(t, n, gate.Linked())
		committed := make(chan int, 1)
		go func() {
			<-c.first
			_ = stm.Atomically(bg, add(&other, 1))
			c.mu.Lock()
			defer c.mu.Unlock()
			committed <- len(c.resumed)
		}()
		require.NoError(t, stm.Atomically(bg, add(&gate, 1)))
		least = min(least, <-committed)
		for fs := c.take(); len(fs) > 0; fs = c.take() {
			for _, f := range fs {
				f()
			}
		}
		require.Equal(t, n, passed)
		if least <= n/4 {
			break
		}
	}
	t.Logf("the other commit has waited for at most %d of %d", least, n)
	require.LessOrEqual(t, least, n/4)
}
