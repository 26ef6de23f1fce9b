package suspendtest_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A Sleep in the block of a Suspend panics, on any scheduler. Explore does not notice.
func TestASleepInABlock(t *testing.T) {
	wrong := func() {
		_, _ = suspend.Suspend(context.Background(), func(suspend.Resumer[int]) (int, bool) {
			_ = suspend.Sleep(context.Background(), 1)
			return 1, true
		})
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a goroutine does not notice")
			}
		}()
		wrong()
	}()
	f := &fails{TB: t}
	suspendtest.Explore(f, func(w *suspendtest.World) { w.Go("a", func(context.Context) { wrong() }) })
	if !f.failed {
		t.Error("Explore does not notice")
	}
}

type fails struct {
	testing.TB
	failed bool
}

func (f *fails) Helper()                   {}
func (f *fails) Errorf(s string, a ...any) { f.failed = true; f.TB.Logf(s, a...) }
