//go:build !explore

package suspend

import "github.com/braidgo/braid/internal/atomicx"

// A number is the place of a Guard in the order of Guards.Lock, or 0 before its first such Lock.
type number struct{ n atomicx.Uint64 }

var lastNumber atomicx.Uint64

func (n *number) rank() uint64 {
	x := n.n.Load()
	if x == 0 {
		n.n.CompareAndSwap(0, lastNumber.Add(1))
		x = n.n.Load()
	}
	return x
}
