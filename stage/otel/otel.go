// Package otel exports the figures of stages and schedulers to OpenTelemetry.
package otel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/braidgo/braid/stage"
)

// Register makes observable instruments for stages, whose names must differ. For the stages of a flow, pass stage.Stages(flow)...
// The instruments have the same names as the metrics of package prom. OpenTelemetry has no observable histogram, so a histogram
// becomes a counter of seconds and a gauge of the 99th percentile. The percentile covers the tasks since the previous collection,
// and the first percentile covers all tasks so far. If there were no tasks, no percentile is observed. A collection by any reader
// counts, so each reader needs its own provider. When the stages are closed, unregister the registration.
func Register(m metric.Meter, stages ...stage.Observed) (metric.Registration, error) {
	r := &registrar{m: m}
	tasks := r.counter("stage_tasks_total", "Tasks by fate.", "1")
	waitSum, waitP99 := r.counter("stage_wait_seconds", "Total time from acceptance to start.", "s"), r.gauge("stage_wait_p99_seconds", "Time from acceptance to start.", "s")
	serviceSum, serviceP99 := r.counter("stage_service_seconds", "Total time in handlers.", "s"), r.gauge("stage_service_p99_seconds", "Time in a handler.", "s")
	waiting, busy, delayed := r.gauge("stage_waiting", "Tasks in the queue.", "1"), r.gauge("stage_busy", "Tasks in progress.", "1"), r.gauge("stage_delayed", "Tasks that wait for another try.", "1")
	outside, width, queue := r.gauge("stage_outside", "Callers that wait for room.", "1"), r.gauge("stage_width", "Maximum number of tasks in progress.", "1"), r.gauge("stage_queue", "Maximum number of tasks in the queue.", "1")
	if r.err != nil {
		return nil, r.err
	}
	var mu sync.Mutex // protects the slice named before
	before := make([]stage.Stats, len(stages))
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		mu.Lock()
		defer mu.Unlock()
		for i, observed := range stages {
			s := observed.Stats()
			since := s.Sub(before[i])
			before[i] = s
			name := attribute.String("stage", s.Name)
			of := metric.WithAttributes(name)
			for fate, n := range map[string]uint64{
				"completed": s.Completed, "failed": s.Failed, "late": s.Late, "cancelled": s.Cancelled, "rejected": s.Rejected,
			} {
				o.ObserveFloat64(tasks, float64(n), metric.WithAttributes(name, attribute.String("fate", fate)))
			}
			for g, v := range map[metric.Float64Observable]float64{
				waiting: float64(s.Waiting), busy: float64(s.Busy), delayed: float64(s.Delayed),
				outside: float64(s.Outside), width: float64(s.Width), queue: float64(s.Queue),
				waitSum: s.Wait.Sum.Seconds(), serviceSum: s.Service.Sum.Seconds(),
			} {
				o.ObserveFloat64(g, v, of)
			}
			for g, h := range map[metric.Float64Observable]*stage.Histogram{waitP99: &since.Wait, serviceP99: &since.Service} {
				if h.Count > 0 {
					o.ObserveFloat64(g, h.Quantile(0.99).Seconds(), of)
				}
			}
		}
		return nil
	}, r.all...)
}

// A registrar makes instruments and keeps the first error.
type registrar struct {
	m   metric.Meter
	all []metric.Observable
	err error
}

func (r *registrar) counter(name, about, unit string) metric.Float64Observable {
	c, err := r.m.Float64ObservableCounter(name, metric.WithDescription(about), metric.WithUnit(unit))
	return r.add(c, err)
}

func (r *registrar) gauge(name, about, unit string) metric.Float64Observable {
	g, err := r.m.Float64ObservableGauge(name, metric.WithDescription(about), metric.WithUnit(unit))
	return r.add(g, err)
}

func (r *registrar) add(o metric.Float64Observable, err error) metric.Float64Observable {
	if err != nil && r.err == nil {
		r.err = err
	}
	r.all = append(r.all, o)
	return o
}
