package fetch

import "context"

// An Override is a source that is replaced in a session, see Options.Use.
type Override struct {
	of   any // the *Source
	load any
}

// With returns an Override: where Options.Use has it, load is called instead of the source's own function.
func (src *Source[K, V]) With(load func(ctx context.Context, b *Batch[K, V]) error) Override {
	if load == nil {
		panic("fetch: nil function")
	}
	return Override{of: src, load: load}
}
