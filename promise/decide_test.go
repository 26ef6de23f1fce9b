package promise

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/braidgo/braid/suspend"
)

// One future decides, and is held up before it resolves. A later decision of the other one has no effect.
func TestOneDecides(t *testing.T) {
	oops := errors.New("oops")
	heldUp := func(g *suspend.Guard, first, second func()) {
		g.Lock() // nobody resolves it
		ended := make(chan struct{})
		go func() { first(); close(ended) }()
		for range 100 {
			runtime.Gosched()
		}
		g.Unlock()
		second() // overtakes the task that was just woken
		<-ended
	}
	for range 300 {
		x, y := New[int](), New[int]()
		p := Any[int](x, y)
		heldUp(&p.guard, func() { _ = x.Fill(1) }, func() { _ = y.Fail(oops) })
		if v, err := p.Await(context.Background()); v != 1 || err != nil {
			t.Fatalf("Any = %d, %v though one was filled", v, err)
		}

		x, y = New[int](), New[int]()
		all := All[int](x, y)
		heldUp(&all.guard, func() { _ = y.Fail(oops) }, func() { _ = x.Fill(1) })
		if vs, err := all.Await(context.Background()); err != oops {
			t.Fatalf("All = %v, %v though one has failed", vs, err)
		}
	}
}
