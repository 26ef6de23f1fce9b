package otel_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/otel"
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
	var out metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &out); err != nil {
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
	if got["stage_tasks_totalcompleted"] != 5 || got["stage_width"] != 3 || len(got) != 5+10 {
		t.Error(got)
	}
	if got["stage_service_seconds"] <= 0 || got["stage_service_p99_seconds"] <= 0 {
		t.Error(got)
	}
	if err := r.Unregister(); err != nil {
		t.Error(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}
