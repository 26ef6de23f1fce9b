package primitive

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func Example() {
	var b Box
	_ = fifo.Run(context.Background(), func(ctx context.Context) error { // a task waits,
		go b.Put(42) // and a plain goroutine puts
		fmt.Println(b.Take(ctx))

		taken, late := suspend.CaseOf(b.TakeOp()), suspend.CaseOf(suspend.After(time.Millisecond))
		won, err := suspend.Select(ctx, taken, late)
		fmt.Println("late:", won == late, err)
		return nil
	})
	// Output:
	// 42 <nil>
	// late: true <nil>
}

// program is a small program that uses a Box. Explore runs it in every order, and cancels it at every point.
func program(put func(b *Box, v int)) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		var b Box
		taken := 0
		w.Go("taker", func(ctx context.Context) { // this ctx is cancelled in some of the runs
			if _, err := b.Take(ctx); err == nil {
				taken++
			}
		})
		w.Go("putter", func(context.Context) { put(&b, 7) })
		w.Check(func() error { // runs at the end of each run
			if b.full {
				taken++
			}
			if taken != 1 {
				return fmt.Errorf("put once, found %d times", taken)
			}
			return nil
		})
	}
}

func TestBox(t *testing.T) {
	suspendtest.Explore(t, program((*Box).Put), suspendtest.ExploreOptions{})
}

// careless is Put with a mistake that is easily made.
func careless(b *Box, v int) {
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.takers.Len() > 0 {
		b.takers.Resume(v, nil) // ignores the result: if it is false, v is lost
		return
	}
	b.full, b.value = true, v
}

func TestCareless(t *testing.T) {
	failed := &failure{TB: t}
	suspendtest.Explore(failed, program(careless), suspendtest.ExploreOptions{})
	if !strings.Contains(failed.text, "put once, found 0 times") {
		t.Fatalf("the mistake is not found: %q", failed.text)
	}
	t.Log(failed.text)
}

// A failure is a test that is expected to fail.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Errorf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }
