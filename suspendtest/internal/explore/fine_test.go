//go:build explore

package explore_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// TestMain makes garbage collections rarer, for short runs.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

func fine(preemptions int) explore.Config {
	return explore.Config{Fine: true, Preemptions: preemptions, Cancellations: explore.Unlimited, Steps: 1000}
}

// A single preemption can lose an addition. Without preemptions none is lost.
func TestPreemptions(t *testing.T) {
	program := func(w *explore.World) {
		var n atomicx.Uint32
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(context.Context) { n.Store(n.Load() + 1) })
		}
		w.Check(func() error {
			if n.Load() != 2 {
				return errors.New("lost")
			}
			return nil
		})
	}
	if r := explore.Run(fine(0), program); r.Failure != nil || r.Executions != 2 {
		t.Errorf("%d runs, %v", r.Executions, r.Failure)
	}
	r := explore.Run(fine(1), program)
	if r.Failure == nil {
		t.Fatal("not found")
	}
	again := explore.Run(explore.Config{Fine: true, Replay: r.Failure.Replay}, program)
	if again.Failure == nil || again.Failure.Error() != r.Failure.Error() {
		t.Errorf("replayed: %v, want %v", again.Failure, r.Failure)
	}
}

func TestDeadlockOfMutexes(t *testing.T) {
	r := explore.Run(fine(1), func(w *explore.World) {
		var x, y atomicx.Mutex
		n := 0
		both := func(x, y *atomicx.Mutex) func(context.Context) {
			return func(context.Context) { x.Lock(); y.Lock(); n++; y.Unlock(); x.Unlock() }
		}
		w.Go("x", both(&x, &y))
		w.Go("y", both(&y, &x))
	})
	if r.Failure == nil || r.Failure.Reason != "deadlock: x waits for a lock, y waits for a lock" {
		t.Error(r.Failure)
	}
}

// While the ledger is kept, every Unlock reports to it, even if the task that hands the Mutex over has not yet written the word.
func TestTheLedgerAtAHandOver(t *testing.T) {
	defer ledger.Start(func(int64) string { return "" })()
	r := explore.Run(fine(3), func(w *explore.World) {
		m := new(mutex.Mutex)
		w.Go("lock", func(context.Context) {
			m.Lock()
			m.Unlock()
		})
		w.Go("select", func(context.Context) {
			_, _ = suspend.Do(bg, m.LockOp())
			m.Unlock()
		})
		w.Check(func() error {
			for _, h := range ledger.Holds() {
				if h.Addr == ledger.Addr(m) {
					return errors.New("a Mutex that nobody holds has a holder")
				}
			}
			return nil
		})
	})
	if r.Failure != nil {
		t.Error(r.Failure)
	}
	if r.Executions < 100 {
		t.Errorf("only %d runs", r.Executions)
	}
}

// The programs are also correct if tasks are switched at each point of an operation. No task is switched while it holds a lock of
// atomicx, because this would hang.
func TestProgramsAtPoints(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			c := explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Executions: 500}
			if x := explore.Run(c, p.program); x.Failure != nil {
				t.Error(x.Failure)
			}
		})
	}
}
