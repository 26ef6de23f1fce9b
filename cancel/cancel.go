// Package cancel provides contexts for large numbers of waiting tasks. Each waiting task costs only a list node.
//
// With a context from context.WithCancel, each task that waits costs a registration, and a goroutine when the context is cancelled. For
// tens of thousands of waiting tasks, use a context from New instead:
//
//	ctx, stop := cancel.New(parent)
//	defer stop(nil)
//
// Such a context is an ordinary context.Context, and every blocking call accepts it. For fewer waiting tasks, use package context.
//
// The result that ends the context is called stop here, because a variable called cancel would shadow the package.
package cancel

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// New returns a context that ends when stop is called or when parent ends. The first call of stop ends the context with
// context.Canceled and the given cause. A nil cause means context.Canceled. Call stop when the context is no longer needed, because
// otherwise parent keeps a reference to it until parent ends. New panics if parent is nil.
//
// A context from context.WithCancelCause starts a goroutine to wake each waiting task. With a context from New, stop wakes the tasks
// itself. When stop returns, the context's Done channel is closed, and each wait with the context has ended or is about to end. A context
// of package context that is derived from this context costs no goroutine either. Use AfterFunc to call other functions when the context
// ends; stop calls these functions too, so do not hold a lock during stop that one of them takes.
//
// The call that ends parent also ends the context, if parent is a context of this package, a context.WithValue of such a context, or
// another context with an AfterFunc method. Such an AfterFunc must not call its function synchronously, because package context holds a
// lock during the call of AfterFunc. With any other parent, Done and Err change as in package context, and one goroutine wakes all tasks
// and calls all functions.
func New(parent context.Context) (ctx context.Context, stop context.CancelCauseFunc) {
	if parent == nil {
		panic("cancel: nil parent")
	}
	c := cancelctx.New(parent, watching.Here)
	return c, (*canceller)(c).stop
}

// A canceller is a Context whose method stop is the second result of New. The method value lets the compiler inline New and avoid an
// allocation.
type canceller cancelctx.Context

func (c *canceller) stop(cause error) {
	suspend.Point()
	(*cancelctx.Context)(c).Cancel(cause)
}

// stopPlainly is the second result of the functions with a deadline.
func (c *canceller) stopPlainly() { c.stop(nil) }

// AfterFunc calls f once, after ctx is done. If ctx is a context of this package, f runs in the call that ends ctx, such as the stop of
// New, which returns after f. If ctx is done already, f is called before AfterFunc returns.
//
// Other contexts have their own rules, apart from the meaning of stop. If ctx has a method
//
//	AfterFunc(f func()) (stop func() bool)
//
// AfterFunc calls it. Otherwise AfterFunc works like context.AfterFunc.
//
// If stop returns true, f will never be called, and the context keeps no reference to f. If stop returns false, f was stopped before, or
// its call has begun.
//
// Since f runs on the goroutine of any caller that ends ctx, f must not suspend, and must not lock anything that such a caller may hold. It
// may cancel contexts, and register and stop functions. For any other function, use context.AfterFunc, which accepts the contexts of this
// package, too, or start a task in f.
//
// Functions are called in the order of registration, without a goroutine and under no lock. Registering, stopping and calling a function
// each take constant time.
//
// If f panics or calls runtime.Goexit, the remaining functions are still called. The panic or exit then continues in the call that ends the
// context.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) { return watching.Here.OnDone(ctx, f) }
