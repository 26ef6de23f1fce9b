package workstealing_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func TestDo(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 2}, func(p *workstealing.Pool) {
		first, second := errors.New("first"), errors.New("second")
		for n := range 20 {
			var ran atomic.Int32
			fs := make([]func(context.Context) error, n)
			for i := range fs {
				fs[i] = func(context.Context) error {
					suspend.Yield()
					ran.Add(1)
					switch i {
					case 5:
						return first
					case 7:
						return second
					}
					return nil
				}
			}
			err := workstealing.Do(context.Background(), p, fs...)
			if want := n > 5; int(ran.Load()) != n || (err == first) != want || !want && err != nil {
				t.Errorf("%d functions: %d ran, %v", n, ran.Load(), err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		var ran atomic.Int32
		one := func(context.Context) error { cancel(); ran.Add(1); return nil }
		other := func(context.Context) error { ran.Add(1); return nil }
		if err := workstealing.Do(ctx, p, one, other); err != nil || ran.Load() != 2 {
			t.Errorf("cancelled when begun: %d ran, %v", ran.Load(), err)
		}
		if err := workstealing.Do(ctx, p, one); !errors.Is(err, context.Canceled) || ran.Load() != 2 {
			t.Errorf("cancelled before: %d ran, %v", ran.Load(), err)
		}
		var met promise.Promise[int] // each function may wait for the others
		err := workstealing.Do(context.Background(), p,
			func(ctx context.Context) error { _, err := met.Await(ctx); return err },
			func(ctx context.Context) error { _, err := met.Await(ctx); return err },
			func(context.Context) error { met.Fill(1); return nil })
		if err != nil {
			t.Error(err)
		}
		func() {
			defer func() {
				if v := recover(); v != "oops" {
					t.Errorf("recovered %v", v)
				}
			}()
			_ = workstealing.Do(context.Background(), p, func(context.Context) error { return nil }, func(context.Context) error { panic("oops") })
		}()
	})
}

func ExampleDo() {
	p := workstealing.New(workstealing.Options{})
	defer p.Close()
	var left, right int
	err := workstealing.Do(context.Background(), p,
		func(context.Context) error { left = 6; return nil },
		func(context.Context) error { right = 7; return nil })
	fmt.Println(left*right, err)
	// Output: 42 <nil>
}
