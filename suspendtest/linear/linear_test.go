package linear_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspendtest"
	"github.com/braidgo/braid/suspendtest/linear"
)

// A counter adds in one critical section, or in two.
type counter struct {
	mu  mutex.Mutex
	n   int
	two bool
}

func (c *counter) add(ctx context.Context) (before int, err error) {
	if err := c.mu.LockContext(ctx); err != nil {
		return 0, err
	}
	before = c.n
	if c.two {
		c.mu.Unlock()
		c.mu.Lock()
	}
	c.n = before + 1
	c.mu.Unlock()
	return before, nil
}

// step is the step function of the model of a counter.
func step(n int, op string, out int) (after int, possible bool) { return n + 1, out == n }

func counting(two bool) func(w *suspendtest.World) {
	m := &linear.Model[int, string, int]{Step: step}
	return func(w *suspendtest.World) {
		c := &counter{two: two}
		h := m.In(w)
		for i, name := range []string{"a", "b"} {
			w.Go(name, func(ctx context.Context) {
				_, _ = h.Do(i, "add", func() (int, error) { return c.add(ctx) })
			})
		}
	}
}

type hearing struct {
	testing.TB
	text string
}

func (h *hearing) Helper()                           {}
func (h *hearing) Errorf(format string, args ...any) { h.text = fmt.Sprintf(format, args...) }
func (h *hearing) Logf(format string, args ...any)   { h.text = fmt.Sprintf(format, args...) }

// A counter that adds in two critical sections returns the same number twice.
func ExampleModel_In() {
	m := &linear.Model[int, string, int]{Step: func(n int, op string, out int) (after int, possible bool) { return n + 1, out == n }}
	heard := new(hearing)
	suspendtest.Explore(heard, func(w *suspendtest.World) {
		c, h := &counter{two: true}, m.In(w)
		for client, name := range []string{"a", "b"} {
			w.Go(name, func(ctx context.Context) {
				_, _ = h.Do(client, "add", func() (int, error) { return c.add(ctx) })
			})
		}
	}, suspendtest.ExploreOptions{})
	_, story, _ := strings.Cut(heard.text, "\n\ta ")
	fmt.Println("	a " + story)

	// Output:
	// 	a                     b
	// 	begins
	// 	lets others run in mutex.Mutex.Lock         linear_test.go:28: c.mu.Lock()
	// 	                      begins
	// 	                      add returns 0, <nil>
	// 	                      has ended
	// 	add returns 0, <nil>
	// 	has ended
	// 	FAILED: check: linear: no order explains
	// 	  1 to   4: add returned 0
	// 	  2 to   3: add returned 0
	// replay: 1.-.001
}

// A history is rejected if no order has its results. The trace shows these results.
func TestHistories(t *testing.T) {
	for two, wants := range map[bool][]string{false: {"runs, all "}, true: {"linear: no order explains", "add returns 0, <nil>", "1 to "}} {
		heard := &hearing{TB: t}
		suspendtest.Explore(heard, counting(two), suspendtest.ExploreOptions{})
		for _, want := range wants {
			if !strings.Contains(heard.text, want) {
				t.Errorf("%s, want %s", heard.text, want)
			}
		}
	}
}

// Operations that do not overlap keep their order, and a failed one is left out.
func TestOrders(t *testing.T) {
	for results, want := range map[string]bool{"0 1 2": true, "0 0": false, "1 0": false, "0 - 1": true, "": true} {
		h := (&linear.Model[int, string, int]{Step: step}).New()
		for i, result := range strings.Fields(results) {
			_, _ = h.Do(i, "add", func() (out int, err error) {
				_, err = fmt.Sscan(result, &out)
				return out, err
			})
		}
		if err := h.Check(); (err == nil) != want {
			t.Errorf("%q: %v", results, err)
		}
	}
}
