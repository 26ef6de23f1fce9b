package fetch

import "context"

// Prime stores a value in the session as if the source had answered. Prime returns false and changes nothing if the session
// already has a request for the key, if ctx has no session, if the session has ended, or if the source is Fresh. A source may
// call Prime, and ctx may already be done.
func (src *Source[K, V]) Prime(ctx context.Context, k K, v V) bool {
	f := frameOf(ctx)
	if f.session() == nil {
		return false
	}
	checkKey(k)
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

// Forget drops the answer to a key, so that the next Get makes a new request. Tasks that are already waiting get the old
// answer. Forget does not change a request that has not been sent. A source may call Forget, for example an Effect that changes
// the value, and ctx may already be done.
func (src *Source[K, V]) Forget(ctx context.Context, k K) {
	f := frameOf(ctx)
	if f.session() == nil {
		return
	}
	checkKey(k)
	t := src.in(f.s, 0)
	f.s.guard.Lock()
	defer f.s.guard.Unlock()
	if e := t.m[k]; e != nil && e.state != pending {
		delete(t.m, k)
	}
}
