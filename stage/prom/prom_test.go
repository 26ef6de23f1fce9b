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
# HELP stage_width Tasks that may be in progress at a time.
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
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
