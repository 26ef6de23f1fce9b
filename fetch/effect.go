package fetch

import "context"

// An Effect is a write. Effects are batched like requests, but each Do is one of its own: nothing is remembered, and nothing is
// shared. They go out when only effects are pending. So all reads that do not come after the answer of an effect see the state
// before it. Reads that are open do not hold up an effect with Eager: they may see either state.
type Effect[K comparable, R any] struct {
	name string
	do   func(ctx context.Context, b *Batch[K, R]) error
	opts options
	keys keys
}

// NewEffect makes an Effect, as New makes a Source. The keys of a batch may be equal: Set answers them in order.
func NewEffect[K comparable, R any](name string, do func(ctx context.Context, b *Batch[K, R]) error, o ...Option) *Effect[K, R] {
	if do == nil {
		panic("fetch: nil function")
	}
	return &Effect[K, R]{name: name, do: do, opts: chosen(o), keys: keysOf[K]()}
}

// Do has an effect done, and returns its result. It suspends its caller until its batch is back.
//
// If ctx is done first, or already, Do returns the error of the cancellation. An effect that is not sent by then never is; one that
// is goes on all the same, and only the end of the session cancels it. A batch that waits for its turn, see MaxOpen, is not sent, and
// goes as a whole: its effects are dropped when nobody waits for any of them. Otherwise Do fails as Get does.
func (x *Effect[K, R]) Do(ctx context.Context, k K) (R, error) {
	f := frameOf(ctx)
	if err := f.check(ctx); err != nil {
		return *new(R), err
	}
	check(x.keys, k)
	s := f.s
	t := tableIn(s, x, x.name, func() *tableOf[K, R] {
		return &tableOf[K, R]{s: s, of: x, name: x.name, load: overridden(s, x, x.do), opts: x.opts, write: true, times: map[K]int{}}
	})
	if s.recorded != nil {
		s.guard.Lock()
		if s.ended {
			s.guard.Unlock()
			return *new(R), ErrEnded
		}
		n := t.times[k]
		t.times[k]++
		s.stats.Gets++
		s.guard.Unlock()
		return t.recorded(k, n).result()
	}
	e, err := t.ask(ctx, f, k)
	if err != nil {
		return *new(R), err
	}
	if f.trail != nil {
		f.trail.got(e.asked)
	}
	return e.result()
}
