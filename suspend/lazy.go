package suspend

import "context"

// Lazily returns a context like ctx whose cancellation, where an operation allows for that, neither wakes nor withdraws
// a wait. A Resume that meets the wait finds the context done and returns false; only then does the
// operation return the error of the cancellation. Waiting and being cancelled cost nothing then, but a wait that nobody
// ever resumes never ends. A context that is done already fails an operation at its beginning, as always.
//
// Promise, MVar, Mutex and rendezvous channels allow for it; everything else, Select and Then among it, treats the
// context as ctx, and so does a context that is derived from it.
func Lazily(ctx context.Context) context.Context {
	return &lazyContext{ctx, lazyPermit{ctx}}
}

// AllowLazy is for a primitive whose waiters hold up nobody and are sure to be resumed at last. It calls AllowLazy on the context of the
// operation. If ctx comes from Lazily, a Suspend with the result is cancelled lazily.
func AllowLazy(ctx context.Context) context.Context {
	if l, ok := ctx.(*lazyContext); ok {
		return &l.permit
	}
	return ctx
}
