package suspendtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A Box is an MVar with a mistake: it ignores the result of ResumeHead. It is empty at first.
type Box struct {
	guard  suspend.Guard
	full   bool
	value  int
	takers suspend.Queue[int, struct{}]
}

func (b *Box) Put(_ context.Context, v int) error {
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.takers.Len() > 0 {
		// If ResumeHead returns false, v is lost.
		b.takers.ResumeHead(v, nil)
		return nil
	}
	b.full, b.value = true, v
	return nil
}

func (b *Box) Take(ctx context.Context) (int, error) {
	return suspend.Wait[int](ctx, (*boxSource)(b))
}

func (b *Box) TryTake() (int, bool) {
	full := b.full
	b.full = false
	return b.value, full
}

type boxSource Box

func (b *boxSource) Guard() *suspend.Guard          { return &b.guard }
func (b *boxSource) Enqueue(r suspend.Resumer[int]) { b.takers.Push(r, struct{}{}) }
func (b *boxSource) Remove(r suspend.Resumer[int])  { b.takers.Remove(r) }

func (b *boxSource) Try() (v int, ok bool, _ error) {
	v, ok = (*Box)(b).TryTake()
	return v, ok, nil
}

type place interface {
	Put(ctx context.Context, v int) error
	Take(ctx context.Context) (int, error)
	TryTake() (int, bool)
}

// A value that was put is taken, or is still there, even if the taker is cancelled.
func takeAndPut(p place) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		taken := 0
		w.Go("taker", func(ctx context.Context) {
			if _, err := p.Take(ctx); err == nil {
				taken++
			}
		})
		w.Go("putter", func(context.Context) { _ = p.Put(context.Background(), 7) })
		w.Check(func() error {
			if _, ok := p.TryTake(); ok {
				taken++
			}
			if taken != 1 {
				return fmt.Errorf("put once, found %d times", taken)
			}
			return nil
		})
	}
}

// In a test, func TestBox(t *testing.T) { suspendtest.Explore(t, …, suspendtest.ExploreOptions{}) } has this output.
func ExampleExplore() {
	suspendtest.Explore(printed{}, func(w *suspendtest.World) { takeAndPut(new(Box))(w) }, suspendtest.ExploreOptions{})
	suspendtest.Explore(printed{}, func(w *suspendtest.World) { takeAndPut(mvar.New[int]())(w) }, suspendtest.ExploreOptions{})

	// Output:
	// run 10 of the exploration has failed: check: put once, found 0 times
	// 	taker         putter
	// 	begins
	// 	suspended                example_explore_test.go:34: return suspend.Wait[int](ctx, (*boxSource)(b))
	// 	is cancelled
	// 	              begins
	// 	              has ended
	// 	has ended
	// 	FAILED: check: put once, found 0 times
	// replay: 0.*.000011
	// explored: 42 runs, all of them
}

// If a program has too many runs, Explore can try random ones.
func ExampleRandom() {
	suspendtest.Explore(printed{}, func(w *suspendtest.World) { takeAndPut(mvar.New[int]())(w) }, suspendtest.ExploreOptions{Random: 500, Depth: 2})
	suspendtest.Explore(printed{}, func(w *suspendtest.World) { takeAndPut(new(Box))(w) }, suspendtest.ExploreOptions{Random: 500, Depth: 2})

	// Output:
	// explored: 1000 runs, and there are more
	// run 541 of the exploration has failed: check: put once, found 0 times
	// 	taker         putter
	// 	begins
	// 	suspended                example_explore_test.go:34: return suspend.Wait[int](ctx, (*boxSource)(b))
	// 	is cancelled
	// 	              begins
	// 	              has ended
	// 	has ended
	// 	FAILED: check: put once, found 0 times
	// replay: 0.*.000011
}

// A printed stands in for a *testing.T.
type printed struct{ testing.TB }

func (printed) Helper()                           {}
func (printed) Logf(format string, args ...any)   { fmt.Printf(format+"\n", args...) }
func (printed) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
