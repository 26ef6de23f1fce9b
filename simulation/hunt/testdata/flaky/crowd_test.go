package flaky

import (
	"sync"
	"testing"
)

// TestCrowd is TestSubmit after tens of thousands of switches that the failure does not need.
func TestCrowd(t *testing.T) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 1000 {
				mu.Lock()
				mu.Unlock()
			}
		})
	}
	all.Wait()
	TestSubmit(t)
}
