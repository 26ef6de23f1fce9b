// Package cancellation tests that cancelled code loses nothing, in four ways. docs/cancellation.md walks through them.
//
//	go test -v ./examples/cancellation
package cancellation

import (
	"context"

	"github.com/braidgo/braid/mvar"
)

// Move takes the value of one place and puts it into another. A cancelled Move leaves the value where it was, or has moved it.
func Move(ctx context.Context, from, to *mvar.MVar[int]) error {
	v, err := from.Take(ctx)
	if err != nil {
		return err // nothing was taken
	}
	if err := to.Put(ctx, v); err != nil {
		return giveBack(from, v, err)
	}
	return nil
}

// giveBack puts v back, whatever happens to the caller. It does not use the context that has ended.
func giveBack(from *mvar.MVar[int], v int, err error) error {
	_ = from.Put(context.Background(), v)
	return err
}

// Careless is Move without the way back.
func Careless(ctx context.Context, from, to *mvar.MVar[int]) error {
	v, err := from.Take(ctx)
	if err != nil {
		return err
	}
	return to.Put(ctx, v) // a Put that is cancelled leaves v with the caller, who drops it
}
