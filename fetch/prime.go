package fetch

import "context"

// Prime gives the session a value, as if the source had answered. It reports false, and changes nothing, if the key was asked for
// before, if there is no session that goes on, or if the source is Fresh. It may be called in a source, and with a ctx that is done.
func (src *Source[K, V]) Prime(ctx context.Context, k K, v V) bool {
	f := frameOf(ctx)
	if f.session() == nil {
		return false
	}
	checkKey(src.keys, k)
	s, t := f.s, src.in(f.s, 0)
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.ended || t.m[k] != nil || t.opts.Fresh {
		return false
	}
	e := t.newLocked(k)
	e.v, e.state = v, done
	return true
}

// Forget drops the answer to a key: the next Get makes a new request. Tasks that wait get the old answer. A request that is not sent yet
// stays as it is. Forget may be called in a source, as by an Effect that changes the value, and with a ctx that is done.
func (src *Source[K, V]) Forget(ctx context.Context, k K) {
	f := frameOf(ctx)
	if f.session() == nil {
		return
	}
	checkKey(src.keys, k)
	t := src.in(f.s, 0)
	f.s.guard.Lock()
	defer f.s.guard.Unlock()
	if e := t.m[k]; e != nil && e.state != pending {
		delete(t.m, k)
	}
}
