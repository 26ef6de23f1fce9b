package outcome_test

import (
	"runtime"
	"testing"

	"github.com/braidgo/braid/internal/outcome"
)

// Each makes all steps, whichever of them panic or exit, and ends like the last of those.
func TestEach(t *testing.T) {
	for bad := range 1 << 5 { // has a bit for each step that panics
		for _, exit := range []bool{false, true} {
			var done []int
			ended := make(chan any)
			go func() {
				returned := false
				defer func() {
					v := recover()
					if v == nil && !returned {
						v = "exit"
					}
					ended <- v
				}()
				outcome.Each(func() bool {
					i := len(done)
					if i == 5 {
						return false
					}
					if done = append(done, i); bad>>i&1 == 0 {
						return true
					}
					if exit {
						runtime.Goexit()
					}
					panic(i)
				})
				returned = true
			}()
			if v := <-ended; len(done) != 5 || (v == nil) != (bad == 0) {
				t.Errorf("%b: steps %v, %v", bad, done, v)
			}
		}
	}
}
