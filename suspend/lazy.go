package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/lazily"
)

// Lazily returns a context like ctx, except that its end does not wake a waiting operation that permits lazy cancellation. The
// waiter stays queued until the next Resume finds that ctx has ended. This Resume returns false, and only then does the operation
// return the cancellation error. A lazy wait needs no registration with ctx, but a wait that is never resumed never ends. If ctx
// has already ended, an operation fails at its beginning as usual.
//
// Promise, MVar, Mutex and rendezvous channels permit lazy cancellation. All other operations, including Select and Then, treat the
// result like ctx. A context that is derived from the result is not lazy.
func Lazily(ctx context.Context) context.Context {
	return lazily.New(ctx)
}
