package simulation

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
)

// A contextWatch waits for the end of a context that cannot call back into the World, such as a context of package context.
type contextWatch struct {
	done   <-chan struct{}
	of     owner
	f      atomicx.Pointer[func()] // the function to call; nil after the call, or after the watch was stopped
	unhook func() bool             // cancels the call that ends the World's sleep; nil outside a bubble
}

// contextWatches is a list of watches in the order of their AfterDone calls.
type contextWatches []*contextWatch

// add adds a watch of ctx, which calls f. If hook is not nil, package context calls it when ctx ends.
func (all *contextWatches) add(ctx context.Context, of owner, f, hook func()) *contextWatch {
	t := &contextWatch{done: ctx.Done(), of: of}
	if !of.gone() {
		t.f.Store(&f)
		*all = append(*all, t)
		if hook != nil {
			t.unhook = context.AfterFunc(ctx, hook)
		}
	}
	return t
}

// drop stops the watches of an owner that has crashed.
func (all contextWatches) drop(of owner) {
	for _, t := range all {
		if t.of == of {
			t.stop()
		}
	}
}

// ended removes and returns the watches whose contexts have ended. It also removes the watches that were stopped.
func (all *contextWatches) ended() (some []*contextWatch) {
	left := (*all)[:0]
	for _, t := range *all {
		if t.f.Load() == nil {
			continue
		}
		select {
		case <-t.done:
			some = append(some, t)
		default:
			left = append(left, t)
		}
	}
	clear((*all)[len(left):])
	*all = left
	return some
}

func (t *contextWatch) stop() bool {
	waits := t.f.Swap(nil) != nil
	if t.unhook != nil {
		t.unhook()
	}
	return waits
}

func (t *contextWatch) fire() {
	if f := t.f.Swap(nil); f != nil {
		(*f)()
	}
}
