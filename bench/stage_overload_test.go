package main

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/testrig/overload"
	"github.com/braidgo/braid/stage"
)

// TestStageOverload draws the experiment of package stage in virtual time. BRAID_RESULTS is the directory for the table and the
// plots; without it, the test runs one point.
func TestStageOverload(t *testing.T) {
	loads, measured := []float64{0.5, 0.9, 1, 1.2, 1.5, 2, 3, 5, 7, 10}, 2*time.Second
	dir := os.Getenv("BRAID_RESULTS")
	if dir == "" {
		loads, measured = []float64{2}, 100*time.Millisecond
	}
	servers := []struct {
		name string
		open func() overload.Server
	}{
		{"stage, Queue 160, Delay 5ms", func() overload.Server { return staged(160, 5*time.Millisecond, false) }},
		{"goroutine per request, semaphore with ctx", overload.Goroutines},
		{"stage, Queue 4000", func() overload.Server { return staged(4000, 0, false) }},
		{"stage, Queue 160", func() overload.Server { return staged(160, 0, false) }},
		{"stage, Queue 4000, LIFO", func() overload.Server { return staged(4000, 0, true) }},
	}
	figure := func(id, y string) curveResult {
		return curveResult{figure: figure{ID: "stage-overload-" + id, Title: "40 requests run in parallel, for 10 ms; clients wait 100 ms",
			About: "Virtual time, Poisson arrivals.", X: "offered load / capacity", Y: y, Rounds: 1}}
	}
	good, p99 := figure("good", "answered in time / capacity"), figure("p99", "p99 of the good, ms")
	for _, s := range servers {
		g, p := curveSeries{Name: s.name}, curveSeries{Name: s.name}
		for _, load := range loads {
			synctest.Test(t, func(t *testing.T) {
				r := overload.Run(s.open(), load, time.Second, measured)
				g.Points = append(g.Points, curvePoint{X: load, Median: r.Good, Min: r.Good, Max: r.Good})
				if ms := r.P99.Seconds() * 1000; ms > 0 {
					p.Points = append(p.Points, curvePoint{X: load, Median: ms, Min: ms, Max: ms})
				}
				t.Logf("%-42s %4.1fx: good %.2f, p99 %v, a no after %v", s.name, load, r.Good, r.P99, r.No)
			})
		}
		good.Series, p99.Series = append(good.Series, g), append(p99.Series, p)
	}
	if dir == "" {
		return
	}
	good.save(dir)
	p99.save(dir)
}

func staged(queue int, delay time.Duration, lifo bool) overload.Server {
	return overload.Staged("", stage.Options{Queue: queue, Delay: delay, LIFO: lifo})
}
