// Package cancellation shows four ways to test that cancelled code loses nothing. docs/cancellation.md explains them.
//
//	go test -v ./examples/cancellation
package cancellation

import (
	"context"

	"github.com/braidgo/braid/mvar"
)

// Move takes the value out of one MVar and puts it into another. A cancelled Move has either moved the value or left it in the first MVar.
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

// giveBack puts v back into its MVar. It uses a new context, because the caller's context has ended.
func giveBack(from *mvar.MVar[int], v int, err error) error {
	_ = from.Put(context.Background(), v)
	return err
}

// Careless is Move without giveBack.
func Careless(ctx context.Context, from, to *mvar.MVar[int]) error {
	v, err := from.Take(ctx)
	if err != nil {
		return err
	}
	return to.Put(ctx, v) // a cancelled Put does not store v, so v is lost
}
