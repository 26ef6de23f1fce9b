package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidgo/braid/suspend/sched"
)

// NewSchedulerCollector returns a collector for schedulers, given by name. Any value with a Stats method will do, such as a loop or
// a pool.
//
//	scheduler_tasks{scheduler,state}  tasks that run, are suspended, or have not begun
//	scheduler_blocking{scheduler,state}  functions of suspend.Blocking that run or are queued
//	scheduler_coroutines{scheduler}  goroutines that run tasks or are kept for further tasks
//	scheduler_wakes_total, scheduler_steals_total
func NewSchedulerCollector(schedulers map[string]interface{ Stats() sched.Stats }) prometheus.Collector {
	return schedulerCollector(schedulers)
}

type schedulerCollector map[string]interface{ Stats() sched.Stats }

var (
	states     = prometheus.NewDesc("scheduler_tasks", "Tasks and callbacks that have not ended.", []string{"scheduler", "state"}, nil)
	blocking   = prometheus.NewDesc("scheduler_blocking", "Functions of suspend.Blocking that run.", []string{"scheduler", "state"}, nil)
	coroutines = prometheus.NewDesc("scheduler_coroutines", "Goroutines that run tasks or are kept for further tasks.", []string{"scheduler"}, nil)
	wakes      = prometheus.NewDesc("scheduler_wakes_total", "Suspended tasks that were resumed.", []string{"scheduler"}, nil)
	steals     = prometheus.NewDesc("scheduler_steals_total", "Tasks that a worker took from another.", []string{"scheduler"}, nil)
)

// Describe implements prometheus.Collector.
func (c schedulerCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{states, blocking, coroutines, wakes, steals} {
		to <- d
	}
}

// Collect implements prometheus.Collector. The figures of a scheduler are not all read at the same moment.
func (c schedulerCollector) Collect(to chan<- prometheus.Metric) {
	for name, scheduler := range c {
		s := scheduler.Stats()
		gauge := func(d *prometheus.Desc, n int64, state ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(max(n, 0)), append([]string{name}, state...)...)
		}
		gauge(states, s.Running, "running")
		gauge(states, s.Suspended, "suspended")
		gauge(states, s.Live-s.Running-s.Suspended, "queued")
		gauge(blocking, s.Blocking, "running")
		gauge(blocking, s.BlockingQueued, "queued")
		gauge(coroutines, s.Coroutines)
		to <- prometheus.MustNewConstMetric(wakes, prometheus.CounterValue, float64(s.Wakes), name)
		to <- prometheus.MustNewConstMetric(steals, prometheus.CounterValue, float64(s.Steals), name)
	}
}
