package suspendtest_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func TestPropertiesOfAllSchedulers(t *testing.T) {
	for _, sched := range schedtest.All {
		t.Run(sched.Name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			open := func(testing.TB) (suspend.Spawner, func()) { return sched.Open() }
			suspendtest.AllProperties(t, open, 5)
		})
	}
}

func TestBatonProperties(t *testing.T) {
	suspendtest.AllProperties(t, openBaton, 5)
}

// Properties is called in a test, like Scheduler.
func ExampleProperties() {
	_ = func(t *testing.T) { suspendtest.Properties(t, openBaton) }

	// Output:
}
