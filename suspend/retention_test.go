package suspend_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// objects is a place where waiters wait for an object. Each waiter also brings an object, as its payload.
type objects struct {
	guard   suspend.Guard
	waiters suspend.Queue[*schedtest.Object, *schedtest.Object]
	mine    suspend.Resumer[*schedtest.Object] // the Resumer of the last waiter
}

// waits is the Source of a single wait.
type waits struct {
	*objects
	brings *schedtest.Object
}

func (w waits) Guard() *suspend.Guard                          { return &w.guard }
func (w waits) Try() (v *schedtest.Object, ok bool, err error) { return nil, false, nil }
func (w waits) Enqueue(r suspend.Resumer[*schedtest.Object])   { w.mine = r; w.waiters.Push(r, w.brings) }
func (w waits) Remove(r suspend.Resumer[*schedtest.Object])    { w.waiters.Remove(r) }
func (o *objects) waiting(t *testing.T, n int) (unlock func()) {
	schedtest.Eventually(t, "a task waits", func() bool {
		o.guard.Lock()
		defer o.guard.Unlock()
		return o.waiters.Len() == n
	})
	o.guard.Lock()
	return o.guard.Unlock
}

// Neither a live task nor a kept Resumer keeps anything of an earlier wait alive: no received value, refused value, payload, or
// value of a continuation. Otherwise a task that waits for a connection could keep it alive for ever.
func TestNothingIsRetained(t *testing.T) {
	type test struct {
		wait func(ctx context.Context, o *objects, count *schedtest.Objects)
		end  func(t *testing.T, o *objects, count *schedtest.Objects, cancel func())
	}
	wait := func(ctx context.Context, o *objects, count *schedtest.Objects) {
		_, _ = suspend.Wait[*schedtest.Object](ctx, waits{o, count.New()})
	}
	resume := func(t *testing.T, o *objects, count *schedtest.Objects, _ func()) {
		defer o.waiting(t, 1)()
		if _, ok := o.waiters.Resume(count.New(), nil); !ok {
			t.Error("refused")
		}
	}
	for name, test := range map[string]test{
		"taken": {wait, resume},
		"taken with an error": {wait, func(t *testing.T, o *objects, count *schedtest.Objects, _ func()) {
			defer o.waiting(t, 1)()
			o.waiters.Resume(count.New(), context.DeadlineExceeded)
		}},
		"refused": {wait, func(t *testing.T, o *objects, count *schedtest.Objects, cancel func()) {
			defer o.waiting(t, 1)()
			cancel() // the waiter cannot remove its node while the guard is locked
			if _, ok := o.waiters.Resume(count.New(), nil); ok {
				t.Error("not refused")
			}
		}},
		"cancelled": {wait, func(t *testing.T, o *objects, _ *schedtest.Objects, cancel func()) {
			o.waiting(t, 1)()
			cancel()
		}},
		"by its Resumer": {wait, func(t *testing.T, o *objects, count *schedtest.Objects, _ func()) {
			defer o.waiting(t, 1)()
			if !o.mine.Resume(count.New(), nil) {
				t.Error("refused")
			}
			if !o.waiters.DropEnded() {
				t.Error("the node was not left behind")
			}
		}},
		"Select": {func(ctx context.Context, o *objects, count *schedtest.Objects) {
			_, _ = suspend.Do(ctx, suspend.OpOf[*schedtest.Object](waits{o, count.New()}))
		}, resume},
		"Select, cancelled": {func(ctx context.Context, o *objects, count *schedtest.Objects) {
			_, _ = suspend.Do(ctx, suspend.OpOf[*schedtest.Object](waits{o, count.New()}))
		}, func(t *testing.T, o *objects, _ *schedtest.Objects, cancel func()) {
			o.waiting(t, 1)()
			cancel()
		}},
		"Then": {func(ctx context.Context, o *objects, count *schedtest.Objects) {
			var p promise.Promise[struct{}]
			held := count.New()
			suspend.Then(ctx, suspend.OpOf[*schedtest.Object](waits{o, count.New()}), onGoroutine{}, func(*schedtest.Object, error) {
				held[0]++
				_ = p.Fill(struct{}{})
			})
			_, _ = p.Await(bg)
		}, resume},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				var o objects
				var count schedtest.Objects
				var goOn promise.Promise[struct{}]
				ctx, end := cancel.New(bg)
				defer end(nil)
				var all sync.WaitGroup
				all.Add(1)
				if err := s.Go(func() {
					defer all.Done()
					test.wait(ctx, &o, &count)
					_, _ = goOn.Await(bg) // waits for other types
				}); err != nil {
					t.Fatal(err)
				}
				test.end(t, &o, &count, func() { end(nil) })
				stale := o.mine
				count.Collected(t, 0)
				if stale.Resume(nil, nil) {
					t.Error("resumed twice")
				}
				_ = goOn.Fill(struct{}{})
				all.Wait()
			})
		})
	}
}

// When a wait or its task has ended, the context has no registration for it, however it ended.
func TestNoRegistrationIsRetained(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, o *objects) (ended func()){
		"Sleep": func(ctx context.Context, _ *objects) func() {
			_ = suspend.Sleep(ctx, time.Microsecond)
			return func() {}
		},
		"Then, resumed": func(ctx context.Context, o *objects) func() {
			var p promise.Promise[struct{}]
			suspend.Then(ctx, suspend.OpOf[*schedtest.Object](waits{o, nil}), onGoroutine{}, func(*schedtest.Object, error) { _ = p.Fill(struct{}{}) })
			o.guard.Lock()
			o.waiters.Resume(nil, nil)
			o.guard.Unlock()
			return func() { _, _ = p.Await(bg) }
		},
		"Then, at once": func(ctx context.Context, _ *objects) func() {
			var p promise.Promise[struct{}]
			suspend.Then(ctx, suspend.After(0), onGoroutine{}, func(time.Time, error) { _ = p.Fill(struct{}{}) })
			return func() { _, _ = p.Await(bg) }
		},
		"Select, Done": func(ctx context.Context, _ *objects) func() {
			_, _ = suspend.Select(bg, suspend.CaseOf(suspend.Done(ctx)), suspend.CaseOf(suspend.After(time.Microsecond)))
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				c := newRude(0)
				var o objects
				schedtest.Run(t, s, func() { wait(c, &o)() })
				schedtest.Eventually(t, "nothing is registered", func() bool { return c.Registered() == 0 })
			})
		})
	}
}
