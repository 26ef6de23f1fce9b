// Package primitive contains a complete primitive, and tests that find a mistake in it. docs/primitive.md explains both.
//
//	go test -v ./examples/primitive
package primitive

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A Box holds at most one value. Put stores or replaces the value. Take waits for a value and removes it.
type Box struct {
	guard  suspend.Guard
	full   bool
	value  int
	takers suspend.Queue[int, struct{}]
}

// Put hands v over to the first waiting Take. If no Take is waiting, Put stores v in the box.
func (b *Box) Put(v int) {
	b.guard.Lock()
	defer b.guard.Unlock()
	if _, ok := b.takers.Resume(v, nil); ok {
		return // a waiting Take has received v
	}
	b.full, b.value = true, v
}

// Take removes and returns the value, and suspends the caller until there is a value. A cancelled Take removes nothing.
func (b *Box) Take(ctx context.Context) (int, error) {
	return suspend.Wait[int](ctx, (*take)(b))
}

// TakeOp returns Take as an Op, for Select and Then.
func (b *Box) TakeOp() suspend.Op[int] { return suspend.OpOf[int]((*take)(b)) }

// take is the operation behind Take and TakeOp. Package suspend calls Try, Enqueue and Remove with the guard held.
type take Box

func (b *take) Guard() *suspend.Guard { return &b.guard }

func (b *take) Try() (v int, ok bool, err error) {
	v, ok = b.value, b.full
	b.full = false
	return v, ok, nil
}

func (b *take) Enqueue(r suspend.Resumer[int]) { b.takers.Push(r, struct{}{}) }
func (b *take) Remove(r suspend.Resumer[int])  { b.takers.Remove(r) }
