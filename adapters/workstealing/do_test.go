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
		ran := 0
		one := func(context.Context) error { cancel(); ran++; return nil }
		if err := workstealing.Do(ctx, p, one, func(context.Context) error { ran++; return nil }); err != nil || ran != 2 {
			t.Errorf("cancelled when begun: %d ran, %v", ran, err)
		}
		if err := workstealing.Do(ctx, p, one); !errors.Is(err, context.Canceled) || ran != 2 {
			t.Errorf("cancelled before: %d ran, %v", ran, err)
		}
		var met promise.Promise[int] // each may wait for the others
		err := workstealing.Do(context.Background(), p,
			func(ctx context.Context) error { _, err := met.Await(ctx); return err },
			func(ctx context.Context) error { _, err := met.Await(ctx); return err },
			func(context.Context) error { return met.Fill(1) })
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
