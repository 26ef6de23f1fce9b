package schedtest

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main is called by TestMain. It runs the tests, and fails if goroutines are left.
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(settled{m, options}, options...)
}

// NoGoroutines fails t if goroutines are left.
func NoGoroutines(t testing.TB) {
	t.Helper()
	awaitGoroutines(nil)
	goleak.VerifyNone(t)
}

type settled struct {
	m       *testing.M
	options []goleak.Option
}

func (s settled) Run() int {
	code := s.m.Run()
	if code == 0 {
		awaitGoroutines(s.options)
	}
	return code
}

// awaitGoroutines waits for goroutines that are about to end. goleak waits for half a second, but such a goroutine may need longer on a busy
// machine.
func awaitGoroutines(options []goleak.Option) {
	for start := time.Now(); time.Since(start) < Deadline && goleak.Find(options...) != nil; {
		time.Sleep(time.Millisecond)
	}
}

// Goroutines returns the number of goroutines, as the minimum of several counts, so that it does not count goroutines that are about to
// end.
func Goroutines() int {
	least := runtime.NumGoroutine()
	for range 20 {
		time.Sleep(50 * time.Microsecond)
		least = min(least, runtime.NumGoroutine())
	}
	return least
}
