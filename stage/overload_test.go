package stage_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/overload"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
)

// TestOverload is the main experiment of the package. It runs in virtual time.
func TestOverload(t *testing.T) {
	servers := []struct {
		name   string
		open   func() overload.Server
		useful bool
	}{
		{"goroutine per request", overload.Goroutines, false},
		{"Queue 4000", func() overload.Server { return overload.Staged("", stage.Options{Queue: 4000}) }, false},
		{"Queue 160, Delay 5ms", func() overload.Server {
			return overload.Staged("", stage.Options{Queue: 160, Delay: 5 * time.Millisecond})
		}, true},
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			loads := []float64{0.9, 1.2, 2, 10}
			if schedtest.Race {
				loads = loads[1:2] // for the race detector, other loads are no different
			}
			for _, load := range loads {
				synctest.Test(t, func(t *testing.T) {
					warm, measured := time.Second, time.Second/2
					if load >= 2 { // at higher loads a queue fills sooner
						warm, measured = time.Second/4, time.Second/4
					}
					r := overload.Run(s.open(), load, warm, measured)
					t.Logf("%4.1fx: good %.2f, p99 %v, a no after %v, %d goroutines", load, r.Good, r.P99, r.No, r.Goroutines)
					switch {
					case load < 1:
						require.Greater(t, r.Good, 0.85)
					case s.useful:
						require.GreaterOrEqual(t, r.Good, 0.97)
						require.LessOrEqual(t, r.P99, 40*time.Millisecond)
						require.LessOrEqual(t, r.Goroutines, overload.Slots+160+5)
					default:
						require.LessOrEqual(t, r.Good, 0.05)
					}
				})
			}
		})
	}
}
