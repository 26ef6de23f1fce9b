package stm_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

func TestElderHeldWhileAnotherCaseIsSettled(t *testing.T) {
	ch := chanx.New[int](1)
	x, y, z := stm.NewVar(0), stm.NewVar(0), stm.NewVar(0)
	runs := 0
	b := suspend.On(stm.Op(func(tx *stm.Tx) (int, error) {
		v := x.Get(tx)
		y.Set(tx, v)
		if runs++; runs <= 10 {
			done := make(chan struct{})
			go func() { _, _ = stm.Try(func(tx *stm.Tx) error { x.Set(tx, x.Get(tx)+1); return nil }); close(done) }()
			<-done
		} else if runs == 11 {
			done := make(chan struct{})
			go func() { _ = ch.Send(context.Background(), 1); close(done) }()
			<-done
		}
		return v, nil
	}))
	a := suspend.On(suspend.Map(ch.RecvOp(), func(v int, err error) (int, error) {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		return v, stm.Atomically(ctx, func(tx *stm.Tx) error { z.Set(tx, 1); return nil })
	}))
	won, err := suspend.SelectOrdered(context.Background(), a, b)
	t.Log(won == a, won == b, err, runs)
	if won == suspend.Selectable(a) {
		_, err = a.Result()
		if err != nil {
			t.Error(err)
		}
	}
}

func TestElderForGood(t *testing.T) {
	x, y := stm.NewVar(0), stm.NewVar(0)
	runs := 0
	b := suspend.On(stm.Op(func(tx *stm.Tx) (int, error) {
		v := x.Get(tx)
		y.Set(tx, v)
		if runs++; runs <= 10 {
			done := make(chan struct{})
			go func() { _, _ = stm.Try(func(tx *stm.Tx) error { x.Set(tx, x.Get(tx)+1); return nil }); close(done) }()
			<-done
		}
		return v, nil
	}))
	before := stm.ReadStats().Elders
	for range 100 {
		if _, err := suspend.Select(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	if n := stm.ReadStats().Elders - before; n != 1 {
		t.Errorf("elder %d times in 100 Selects of which one was made vain", n)
	}
}
