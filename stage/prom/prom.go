// Package prom exports the figures of stages and schedulers to Prometheus.
package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidgo/braid/stage"
)

// NewCollector returns a collector for stages, whose names must differ. For the stages of a flow, pass stage.Stages(flow)...
//
//	stage_tasks_total{stage,fate}  accepted tasks by fate, and rejected tasks
//	stage_waiting, stage_busy, stage_delayed, stage_outside, stage_width, stage_queue
//	stage_wait_seconds, stage_service_seconds  histograms
func NewCollector(stages ...stage.Observed) prometheus.Collector { return collector(stages) }

type collector []stage.Observed

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("stage_"+name, help, append([]string{"stage"}, labels...), nil)
}

var (
	tasks   = describe("tasks_total", "Tasks by fate.", "fate")
	waiting = describe("waiting", "Tasks in the queue.")
	busy    = describe("busy", "Tasks in progress.")
	delayed = describe("delayed", "Tasks that wait for another try.")
	outside = describe("outside", "Callers that wait for room.")
	width   = describe("width", "Maximum number of tasks in progress.")
	queue   = describe("queue", "Maximum number of tasks in the queue.")
	wait    = describe("wait_seconds", "Time from acceptance to start.")
	service = describe("service_seconds", "Time in a handler.")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{tasks, waiting, busy, delayed, outside, width, queue, wait, service} {
		to <- d
	}
}

// Collect implements prometheus.Collector. The figures of each stage are read at one moment.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, o := range c {
		s := o.Stats()
		for fate, n := range map[string]uint64{
			"completed": s.Completed, "failed": s.Failed, "late": s.Late, "cancelled": s.Cancelled, "rejected": s.Rejected,
		} {
			to <- prometheus.MustNewConstMetric(tasks, prometheus.CounterValue, float64(n), s.Name, fate)
		}
		for d, n := range map[*prometheus.Desc]int{
			waiting: s.Waiting, busy: s.Busy, delayed: s.Delayed, outside: s.Outside, width: s.Width, queue: s.Queue,
		} {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), s.Name)
		}
		to <- histogram(wait, &s.Wait, s.Name)
		to <- histogram(service, &s.Service, s.Name)
	}
}

// bounds are the upper bounds of the buckets, in seconds. The bounds are fixed, so that Prometheus can add histograms.
var bounds = []float64{1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

func histogram(d *prometheus.Desc, h *stage.Histogram, name string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(bounds))
	for _, b := range bounds {
		buckets[b] = 0
	}
	for upTo, n := range h.Buckets {
		for _, b := range bounds {
			if upTo.Seconds() <= b {
				buckets[b] = max(buckets[b], n)
			}
		}
	}
	return prometheus.MustNewConstHistogram(d, h.Count, h.Sum.Seconds(), buckets, name)
}
