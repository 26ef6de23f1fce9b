package workstealing_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// On one processor, somebody else has a turn much more often than the runtime preempts a pool that computes.
func TestWorkersGiveWay(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := workstealing.New(workstealing.Options{Workers: 1})
	defer p.Close()
	start, ended := time.Now(), make(chan time.Duration)
	err := p.Go(func() {
		for time.Since(start) < 200*time.Millisecond {
			_, _ = fibOn(p, 15)
		}
		ended <- time.Since(start)
	})
	if err != nil {
		t.Fatal(err)
	}
	for turns := 0; ; turns++ {
		select {
		case d := <-ended:
			if most := int(d / (10 * time.Millisecond)); turns < 3*most {
				t.Errorf("%d turns in %v, and %d by preemption", turns, d, most)
			}
			return
		default:
			runtime.Gosched()
		}
	}
}
