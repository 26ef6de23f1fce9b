// Package cancel provides contexts that many tasks can wait with: each waiting task costs a list node.
package cancel

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// New returns a context that ends when cancel is called or when parent ends. cancel(cause) ends it with context.Canceled
// and the given cause; a nil cause stands for context.Canceled. The first call decides. cancel must be called some time:
// until then, or until parent ends, parent keeps the context. New panics if parent is nil.
//
// A context of context.WithCancelCause wakes each waiting task by a goroutine. This one wakes them itself: when cancel
// returns, Done is closed, and each wait with the context has ended or is about to. Contexts of package context that are
// derived from this one cost no goroutine either. See AfterFunc for calls of other functions.
//
// If parent is such a context, or a context.WithValue of one, or foreign to package context with an AfterFunc of its own,
// the end of parent is passed on in the call that ends parent. Such a foreign AfterFunc must not call back on the same
// goroutine before it returns, since package context holds a lock meanwhile. From any other parent Done and Err are passed
// on as package context does, and the calls are made on one goroutine.
func New(parent context.Context) (ctx context.Context, cancel func(cause error)) {
	if parent == nil {
		panic("cancel: nil parent")
	}
	c := cancelctx.New(parent)
	return c, c.Cancel
}

// AfterFunc calls f once, after ctx is done. It is context.AfterFunc, but for contexts of this package and others that have
// a method
//
//	AfterFunc(f func()) (stop func() bool)
//
// which it calls. A context of this package calls f without a goroutine, under no lock, in the order of registration,
// before the cancel returns that ended the context. If the context is done already, it calls f before AfterFunc returns.
// Registering, stopping and calling each take constant time. f must not suspend. It may cancel, register and stop. If f
// panics or exits its goroutine, the others are called all the same, and then the panic goes on to the caller of cancel.
//
// A stop that returns true says that f will never be called, and the context keeps nothing of it. False says that f was
// stopped before, or that its call has begun.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) { return cancelctx.OnDone(ctx, f) }

// Lazily is suspend.Lazily, the other way to make cancellation cheap: a context like ctx which, with operations that
// allow for it, cancels a wait only when a Resume meets it.
func Lazily(ctx context.Context) context.Context { return suspend.Lazily(ctx) }
