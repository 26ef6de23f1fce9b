package stage_test

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/stage"
)

func cpuEyes() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestRateGatherSpins(t *testing.T) {
	runtime.GOMAXPROCS(1)
	s := stage.NewBatch("b", func(ctx context.Context, in []int, out []int) error { return nil },
		stage.Options{Batch: 2, Queue: 10, Rate: 2, Gather: 5 * time.Millisecond})
	before := cpuEyes()
	for i := range 4 {
		if err := s.Submit(context.Background(), i); err != nil {
			t.Fatal(err)
		}
	}
	t0 := time.Now()
	_ = s.Close(context.Background())
	t.Logf("took %v, cpu %v", time.Since(t0), cpuEyes()-before)
	if d := cpuEyes() - before; d > 100*time.Millisecond {
		t.Errorf("burned %v", d)
	}
}
