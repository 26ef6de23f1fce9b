package fetch

import "context"

// An Override is a source or an Effect that is replaced in a session, see Options.Use. Of two for one source the last counts.
type Override struct {
	of   any // the *Source or *Effect
	load any
}

// With returns an Override: where Options.Use has it, load is called instead of the source's own function.
func (src *Source[K, V]) With(load func(ctx context.Context, b *Batch[K, V]) error) Override {
	if load == nil {
		panic("fetch: nil function")
	}
	return Override{of: src, load: load}
}

// With returns an Override: where Options.Use has it, do is called instead of the effect's own function.
func (x *Effect[K, R]) With(do func(ctx context.Context, b *Batch[K, R]) error) Override {
	if do == nil {
		panic("fetch: nil function")
	}
	return Override{of: x, load: do}
}

// overridden returns the function that is called for a source in s.
func overridden[K comparable, V any](s *Session, of any, load func(ctx context.Context, b *Batch[K, V]) error) func(context.Context, *Batch[K, V]) error {
	for _, o := range s.opts.Use {
		if o.of == of {
			load = o.load.(func(context.Context, *Batch[K, V]) error)
		}
	}
	return load
}
