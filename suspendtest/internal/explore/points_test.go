package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func TestTmp(t *testing.T) {
	c := all
	c.Points = true
	c.Yields = 1
	r := explore.Run(c, func(w *explore.World) {
		var m mutex.Mutex
		x := 0
		for range 2 {
			w.Go("t", func(ctx context.Context) {
				_ = m.Lock(bg)
				v := x
				m.Unlock()
				_ = m.Lock(bg)
				x = v + 1
				m.Unlock()
			})
		}
		w.Check(func() error {
			if x != 2 {
				return errors.New("lost")
			}
			return nil
		})
	})
	fmt.Println(r.Executions, r.Exhausted, r.Cut, r.Failure)
	c.Points = false
	_ = promise.New[int]
	_ = chanx.New[int]
	_ = suspend.Yield
}
