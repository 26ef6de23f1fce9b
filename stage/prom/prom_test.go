package prom_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/prom"
	"github.com/braidgo/braid/suspend/sched"
)

func TestCollector(t *testing.T) {
	s := stage.New("disk", func(_ context.Context, n int) (int, error) {
		if n == 0 {
			return 0, errors.New("oops")
		}
		return n, nil
	}, stage.Options{Width: 3, Queue: 7})
	for i := range 5 {
		_, _ = s.Do(context.Background(), i)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(prom.NewCollector(s))
	want := `
# HELP stage_tasks_total Tasks by fate.
# TYPE stage_tasks_total counter
stage_tasks_total{fate="cancelled",stage="disk"} 0
stage_tasks_total{fate="completed",stage="disk"} 4
stage_tasks_total{fate="failed",stage="disk"} 1
stage_tasks_total{fate="late",stage="disk"} 0
stage_tasks_total{fate="rejected",stage="disk"} 0
# HELP stage_width Maximum number of tasks in progress.
# TYPE stage_width gauge
stage_width{stage="disk"} 3
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "stage_tasks_total", "stage_width"); err != nil {
		t.Error(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range families {
		if f.GetName() != "stage_service_seconds" {
			continue
		}
		h := f.Metric[0].Histogram
		if h.GetSampleCount() != 5 || h.Bucket[len(h.Bucket)-1].GetCumulativeCount() != 5 {
			t.Error(h)
		}
		last := uint64(0)
		for _, b := range h.Bucket {
			if b.GetCumulativeCount() < last {
				t.Error("not cumulative", h)
			}
			last = b.GetCumulativeCount()
		}
		seen++
	}
	if seen != 1 || len(families) != 9 {
		t.Error(seen, len(families))
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// figures has the figures of a stage that has been running for days.
type figures stage.Stats

func (f *figures) Stats() stage.Stats { return stage.Stats(*f) }

// A bucket counts beyond 32 bits, like the total: half a day at a hundred thousand tasks a second.
func TestBucketsDoNotWrap(t *testing.T) {
	const many = 1<<32 + 10
	f := &figures{Name: "disk"}
	for _, h := range []*stage.Histogram{&f.Wait, &f.Service} {
		h.Counts[40], h.Count = many, many
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(prom.NewCollector(f))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range families {
		if h := f.Metric[0].Histogram; h != nil {
			if got := h.Bucket[len(h.Bucket)-1].GetCumulativeCount(); got != many {
				t.Errorf("%s: %d in the largest bucket, of %d", f.GetName(), got, h.GetSampleCount())
			}
			seen++
		}
	}
	if seen != 2 {
		t.Error(seen, "histograms")
	}
}

// A scheduler has fixed figures.
type scheduler sched.Stats

func (s scheduler) Stats() sched.Stats { return sched.Stats(s) }

func TestSchedulerCollector(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(prom.NewSchedulerCollector(map[string]interface{ Stats() sched.Stats }{
		"loop": scheduler{Live: 9, Running: 1, Suspended: 6, Wakes: 70, Steals: 3, Blocking: 4, BlockingQueued: 5, Coroutines: 8},
	}))
	want := `
# HELP scheduler_blocking Functions of suspend.Blocking that run.
# TYPE scheduler_blocking gauge
scheduler_blocking{scheduler="loop",state="queued"} 5
scheduler_blocking{scheduler="loop",state="running"} 4
# HELP scheduler_coroutines Goroutines that run tasks or are kept for further tasks.
# TYPE scheduler_coroutines gauge
scheduler_coroutines{scheduler="loop"} 8
# HELP scheduler_steals_total Tasks that a worker took from another.
# TYPE scheduler_steals_total counter
scheduler_steals_total{scheduler="loop"} 3
# HELP scheduler_tasks Tasks and callbacks that have not ended.
# TYPE scheduler_tasks gauge
scheduler_tasks{scheduler="loop",state="queued"} 2
scheduler_tasks{scheduler="loop",state="running"} 1
scheduler_tasks{scheduler="loop",state="suspended"} 6
# HELP scheduler_wakes_total Suspended tasks that were resumed.
# TYPE scheduler_wakes_total counter
scheduler_wakes_total{scheduler="loop"} 70
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
