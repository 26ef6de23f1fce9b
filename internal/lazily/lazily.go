// Package lazily has the contexts of suspend.Lazily. Only primitives of this module look at them.
package lazily

import "context"

// A Context is the result of suspend.Lazily. Allow returns its Permit.
type Context struct {
	context.Context
	permit Permit
}

// A Permit is the context of an operation that is cancelled lazily.
type Permit struct{ context.Context }

// New returns a Context like ctx.
func New(ctx context.Context) *Context { return &Context{ctx, Permit{ctx}} }

// Allow permits lazy cancellation of the operation whose context is ctx. A primitive calls Allow if its waiters delay nobody and are
// certain to be resumed eventually. If ctx is a Context, a Suspend with the result of Allow is cancelled lazily. Otherwise Allow
// returns ctx.
func Allow(ctx context.Context) context.Context {
	if l, ok := ctx.(*Context); ok {
		return &l.permit
	}
	return ctx
}

// Allowed reports whether ctx is a Permit.
func Allowed(ctx context.Context) bool {
	_, ok := ctx.(*Permit)
	return ok
}

// Plain returns the context in ctx if ctx is a Permit, and otherwise ctx.
func Plain(ctx context.Context) context.Context {
	if l, ok := ctx.(*Permit); ok {
		return l.Context
	}
	return ctx
}
