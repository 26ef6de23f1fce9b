package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/braidgo/braid/suspend/sched"
)

// RegisterSchedulers makes observable instruments for schedulers, given by name. Any value with a Stats method will do, such as a
// loop or a pool. When the schedulers are closed, unregister the registration.
func RegisterSchedulers(m metric.Meter, schedulers map[string]interface{ Stats() sched.Stats }) (metric.Registration, error) {
	r := &registrar{m: m}
	running, suspended := r.gauge("scheduler_running", "Running tasks.", "1"), r.gauge("scheduler_suspended", "Suspended tasks.", "1")
	queued := r.gauge("scheduler_queued", "Tasks that have not started.", "1")
	blocking, waiting := r.gauge("scheduler_blocking", "Functions of suspend.Blocking that run.", "1"), r.gauge("scheduler_blocking_queued", "Functions of suspend.Blocking that wait to run.", "1")
	coroutines := r.gauge("scheduler_coroutines", "Goroutines that run tasks or are kept for further tasks.", "1")
	wakes := r.counter("scheduler_wakes_total", "Suspended tasks that were resumed.", "1")
	steals := r.counter("scheduler_steals_total", "Tasks that a worker took from another.", "1")
	if r.err != nil {
		return nil, r.err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, scheduler := range schedulers {
			s := scheduler.Stats()
			of := metric.WithAttributes(attribute.String("scheduler", name))
			for g, v := range map[metric.Float64Observable]float64{
				running: float64(s.Running), suspended: float64(s.Suspended), queued: float64(max(s.Live-s.Running-s.Suspended, 0)),
				blocking: float64(s.Blocking), waiting: float64(s.BlockingQueued), coroutines: float64(s.Coroutines), wakes: float64(s.Wakes), steals: float64(s.Steals),
			} {
				o.ObserveFloat64(g, v, of)
			}
		}
		return nil
	}, r.all...)
}
