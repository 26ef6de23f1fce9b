package main

import (
	"testing"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// TestConformance is the only test that the author of a scheduler has to write.
func TestConformance(t *testing.T) {
	suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
		s := New()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run()
		}()
		return s, func() {
			s.Close()
			<-ended
		}
	}, suspendtest.Options{FIFO: true})
}

func Example() {
	main()
	// Unordered output:
	// hello from the first task <nil>
	// goodbye from the first task <nil>
	// hello from the second task <nil>
	// goodbye from the second task <nil>
}
