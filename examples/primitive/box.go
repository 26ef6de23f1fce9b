// Package primitive has a primitive of thirty lines, and what a mistake in it looks like. docs/primitive.md walks through it.
//
//	go test -v ./examples/primitive
package primitive

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A Box holds one value, or none. Put replaces it, Take waits for one.
type Box struct {
	guard  suspend.Guard
	full   bool
	value  int
	takers suspend.Queue[int, struct{}]
}

// Put hands v to the first Take that waits, or leaves it in the box.
func (b *Box) Put(v int) {
	b.guard.Lock()
	defer b.guard.Unlock()
	if _, ok := b.takers.Resume(v, nil); ok {
		return // a taker has it
	}
	b.full, b.value = true, v
}

// Take suspends the caller until there is a value. A cancelled Take has taken nothing.
func (b *Box) Take(ctx context.Context) (int, error) {
	return suspend.Wait[int](ctx, (*take)(b), false)
}

// TakeOp is Take as an Op, for Select and Then.
func (b *Box) TakeOp() suspend.Op[int] { return suspend.OpOf[int]((*take)(b)) }

// take is the operation: a guard, a look, and a place to wait in. Try, Enqueue and Remove run under the guard.
type take Box

func (b *take) Guard() *suspend.Guard { return &b.guard }

func (b *take) Try() (v int, ok bool, err error) {
	v, ok = b.value, b.full
	b.full = false
	return v, ok, nil
}

func (b *take) Enqueue(r suspend.Resumer[int]) { b.takers.Push(r, struct{}{}) }
func (b *take) Remove(r suspend.Resumer[int])  { b.takers.Remove(r) }
