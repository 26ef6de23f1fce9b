package scope_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// The stop function of a hostileStop panics once the owner has taken the context back.
type hostileStop struct {
	context.Context
	back *bool
}

func (h hostileStop) AfterFunc(f func()) func() bool {
	stop := context.AfterFunc(h.Context, f)
	return func() bool {
		if *h.back {
			panic("recycled")
		}
		return stop()
	}
}

// If a stop function panics, the Limit does not lose a place, and Run does not hang.
func TestHostileStop(t *testing.T) {
	parent, end := context.WithCancel(context.Background())
	defer end()
	back := false
	inner := scope.Limit(1, suspend.Goroutines)
	outer := scope.Limit(1, inner)
	gate := make(chan bool)
	_ = inner.Go(func() { <-gate })
	returned := make(chan any, 1)
	go func() {
		defer func() { returned <- recover() }()
		err := scope.Run(hostileStop{parent, &back}, func(ctx context.Context, s *scope.Scope) error {
			s.Go(outer, func(context.Context) error { return nil })
			s.Go(outer, func(context.Context) error { return nil })
			back = true
			return context.Canceled
		})
		returned <- err
	}()
	select {
	case v := <-returned:
		t.Log("Run: ", v)
	case <-time.After(time.Second):
		t.Error("Run hangs")
	}
	close(gate)
	ran := make(chan bool)
	_ = outer.Go(func() { close(ran) })
	select {
	case <-ran:
	case <-time.After(time.Second):
		t.Error("the place of outer is lost")
	}
}
