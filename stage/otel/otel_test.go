package otel_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/otel"
	"github.com/braidgo/braid/suspend/sched"
)

func TestRegister(t *testing.T) {
	ctx := context.Background()
	s := stage.New("disk", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{Width: 3})
	for i := range 5 {
		_, _ = s.Do(ctx, i)
	}
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	r, err := otel.Register(provider.Meter("test"), s)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, reader)
	if got["stage_tasks_totalcompleted"] != 5 || got["stage_width"] != 3 || len(got) != 5+10 {
		t.Error(got)
	}
	if got["stage_service_seconds"] <= 0 || got["stage_service_p99_seconds"] <= 0 {
		t.Error(got)
	}
	if err := r.Unregister(); err != nil {
		t.Error(err)
	}
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// A scheduler has fixed figures.
type scheduler sched.Stats

func (s scheduler) Stats() sched.Stats { return sched.Stats(s) }

func TestRegisterSchedulers(t *testing.T) {
	reader := metric.NewManualReader()
	r, err := otel.RegisterSchedulers(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), map[string]interface{ Stats() sched.Stats }{
		"loop": scheduler{Live: 9, Running: 1, Suspended: 6, Wakes: 70, Steals: 3, Blocking: 4, BlockingQueued: 5, Coroutines: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"scheduler_running": 1, "scheduler_suspended": 6, "scheduler_queued": 2, "scheduler_blocking": 4,
		"scheduler_blocking_queued": 5, "scheduler_coroutines": 8, "scheduler_wakes_total": 70, "scheduler_steals_total": 3}
	if got := collect(t, reader); !maps.Equal(got, want) {
		t.Error(got)
	}
	if err := r.Unregister(); err != nil {
		t.Error(err)
	}
}

func collect(t *testing.T, reader metric.Reader) map[string]float64 {
	var out metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range out.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Sum[float64]:
			for _, p := range d.DataPoints {
				fate, _ := p.Attributes.Value(attribute.Key("fate"))
				got[m.Name+fate.AsString()] = p.Value
			}
		case metricdata.Gauge[float64]:
			got[m.Name] = d.DataPoints[0].Value
		}
	}
	return got
}

// A quantile covers the tasks since the last collection: it does not show a slow hour long ago, but a slow minute just now.
func TestQuantilesOfTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("disk", func(_ context.Context, d time.Duration) (int, error) { time.Sleep(d); return 0, nil }, stage.Options{})
		reader := metric.NewManualReader()
		r, err := otel.Register(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), s)
		if err != nil {
			t.Fatal(err)
		}
		for i, took := range []time.Duration{time.Second, time.Millisecond, 0, time.Minute} {
			n := 100_000
			if i > 0 {
				n = 10
			}
			for range n {
				if took > 0 {
					_, _ = s.Do(context.Background(), took)
				}
			}
			got, ok := collect(t, reader)["stage_service_p99_seconds"]
			if ok != (took > 0) || ok && (got < took.Seconds()*0.75 || got > took.Seconds()*1.25) {
				t.Errorf("tasks of %v: %v, %v", took, got, ok)
			}
		}
		if err := errors.Join(r.Unregister(), s.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	})
}
