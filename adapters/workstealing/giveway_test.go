package workstealing_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// On one processor, another goroutine runs much more often than if only the runtime preempted a pool that computes. A loaded
// machine may leave this process without a processor, so the best of several attempts counts.
func TestWorkersGiveWay(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := workstealing.New(workstealing.Options{Workers: 1})
	defer p.Close()
	const computes = 100 * time.Millisecond
	best := 0
	for attempt := 0; attempt < 40 && best < 20; attempt++ {
		start, ended := time.Now(), make(chan struct{})
		err := p.Go(func() {
			for time.Since(start) < computes {
				_, _ = fibOn(p, 15)
			}
			close(ended)
		})
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		for over := false; !over; turns++ {
			select {
			case <-ended:
				over = true
			default:
				runtime.Gosched()
			}
		}
		best = max(best, turns)
	}
	if best < 20 {
		t.Errorf("%d turns in %v, and %d by preemption", best, computes, computes/(10*time.Millisecond))
	}
}
