package prom_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/stage/prom"
	"github.com/braidgo/braid/suspend/sched"
)

func ExampleNewSchedulerCollector() {
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	r := prometheus.NewRegistry()
	r.MustRegister(prom.NewSchedulerCollector(map[string]interface{ Stats() sched.Stats }{"pool": pool}))
	fmt.Println(testutil.GatherAndCount(r, "scheduler_wakes_total", "scheduler_steals_total"))
	// Output: 2 <nil>
}
