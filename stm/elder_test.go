package stm_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// contended is a transaction on x and y. Another transaction makes its first ten runs fail. In later runs it calls then.
func contended(x, y *stm.Var[int], then func(run int)) *suspend.Case[int] {
	runs := 0
	return suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) {
		v := x.Get(tx)
		y.Set(tx, v)
		done := make(chan struct{})
		runs++
		go func() {
			defer close(done)
			if runs <= 10 {
				_, _ = stm.Try(func(tx *stm.Tx) error { x.Set(tx, x.Get(tx)+1); return nil })
			} else {
				then(runs)
			}
		}()
		<-done
		return v, nil
	}))
}

func TestElderHeldWhileAnotherCaseIsSettled(t *testing.T) {
	ch := chanx.New[int](1)
	z := stm.NewVar(0)
	b := contended(stm.NewVar(0), stm.NewVar(0), func(run int) {
		if run == 11 {
			_ = ch.Send(context.Background(), 1)
		}
	})
	a := suspend.CaseOf(suspend.Map(ch.RecvOp(), func(v int, err error) (int, error) {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		return v, stm.Atomically(ctx, func(tx *stm.Tx) error { z.Set(tx, 1); return nil })
	}))
	won, err := suspend.SelectOrdered(context.Background(), a, b)
	t.Log(won == a, won == b, err)
	if won == suspend.Selectable(a) {
		_, err = a.Result()
		if err != nil {
			t.Error(err)
		}
	}
}

func TestElderForGood(t *testing.T) {
	b := contended(stm.NewVar(0), stm.NewVar(0), func(int) {})
	before := stm.ReadStats().Elders
	for range 100 {
		if _, err := suspend.Select(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	if n := stm.ReadStats().Elders - before; n != 1 {
		t.Errorf("elder %d times in 100 Selects, of which one was made to fail", n)
	}
}
