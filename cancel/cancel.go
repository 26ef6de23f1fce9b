// Package cancel provides contexts that many tasks can wait with: each waiting task costs a list node.
//
// With a context of context.WithCancel, each waiting task of a scheduler costs a registration, and its cancellation a goroutine. For
// tens of thousands of waiters use this instead:
//
//	ctx, cancel := cancel.New(parent)
//	defer cancel(nil)
//
// It is a context.Context like any other, and every blocking call takes both kinds. For fewer waiters use package context.
package cancel

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// New returns a context that ends when cancel is called or when parent ends. cancel(cause) ends it with
// context.Canceled and the given cause. A nil cause means context.Canceled. The first call decides. Call cancel in the
// end: until then, or until parent ends, parent keeps the context. New panics if parent is nil.
//
// A context of context.WithCancelCause wakes each waiting task by a goroutine. This one wakes them itself. When cancel returns, Done is
// closed, and each wait with the context has ended or is about to. Contexts of package context that are derived from this one cost no
// goroutine either. See AfterFunc for calls of other functions.
//
// The end of parent is passed on in the call that ends parent, if parent is one of three kinds: a context of this
// package, a context.WithValue of such a context, or a foreign context with an AfterFunc method. Such an AfterFunc must
// not call back on the same goroutine before it returns, since package context holds a lock until then. From any other
// parent, Done and Err are passed on as package context does, and the calls are made on one goroutine.
func New(parent context.Context) (ctx context.Context, cancel func(cause error)) {
	if parent == nil {
		panic("cancel: nil parent")
	}
	c := cancelctx.New(parent, watching.Here)
	return c, (*canceller)(c).cancel
}

// A canceller ends a Context by a method value, so that New is inlined and the function need not be allocated.
type canceller cancelctx.Context

func (c *canceller) cancel(cause error) {
	suspend.Point()
	(*cancelctx.Context)(c).Cancel(cause)
}

// AfterFunc calls f once, after ctx is done. It is context.AfterFunc, except for contexts that have a method
//
//	AfterFunc(f func()) (stop func() bool)
//
// which it calls. Contexts of this package have it. A context of this package calls f without a goroutine, under no
// lock, in the order of registration, before the deciding cancel returns. If the context is done already, it calls f
// before AfterFunc returns. Registering, stopping and calling each take constant time. f must not suspend. It may
// cancel, register and stop. If f panics or exits its goroutine, the remaining functions are called even so, and then
// the panic goes on to the caller of cancel.
//
// A stop that returns true says that f will never be called, and the context keeps nothing of it. False says that f was
// stopped before, or that its call has begun.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) { return watching.Here.OnDone(ctx, f) }
