package fetch

import "context"

// An Effect is a write. Effects are batched like requests, but each Do is one of its own: nothing is remembered, and nothing is
// shared. They go out when only effects are pending. So all reads that do not come after the answer of an effect see the state
// before it. Reads that are open do not hold up an effect with Eager: they may see either state.
type Effect[K comparable, R any] struct{ src Source[K, R] }

// NewEffect makes an Effect, as New makes a Source. The keys of a batch may be equal: Set answers them in order.
func NewEffect[K comparable, R any](name string, do func(ctx context.Context, b *Batch[K, R]) error, o ...SourceOptions) *Effect[K, R] {
	x := &Effect[K, R]{*New(name, do, o...)}
	x.src.write = true
	return x
}

// Do has an effect done, and returns its result. It suspends its caller until its batch is back.
//
// If ctx is done first, or already, Do returns the error of the cancellation. An effect that is not sent by then never is; one that
// is goes on all the same, and only the end of the session cancels it. A batch that waits for its turn, see MaxOpen, is not sent, and
// goes as a whole: its effects are dropped when nobody waits for any of them. Otherwise Do fails as Get does.
func (x *Effect[K, R]) Do(ctx context.Context, k K) (R, error) { return x.src.Get(ctx, k) }

// Replace returns an Override: where Options.Use has it, do is called instead of the effect's own function.
func (x *Effect[K, R]) Replace(do func(ctx context.Context, b *Batch[K, R]) error) Override {
	return x.src.Replace(do)
}
