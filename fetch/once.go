package fetch

import "context"

// Once makes a source of one value that a program must not compute twice, nor anew in a replay: the time, a random number. f is
// called by the first Get, at once, in its task. Its result is recorded like an answer. It must not fetch.
func Once[V any](name string, f func(ctx context.Context) (V, error)) *Source[struct{}, V] {
	if f == nil {
		panic("fetch: nil function")
	}
	return New(name, func(ctx context.Context, b *Batch[struct{}, V]) error {
		v, err := f(ctx)
		if err == nil {
			b.Set(struct{}{}, v)
		}
		return err
	}, Immediate(), Inline())
}

// once runs a source that is called at once, and by the caller, and returns the answer, which the session need not remember. It
// returns nil if there is a request of k already, or if the batch would have to wait for its turn. gets is 1 for a Get.
func (t *tableOf[K, V]) once(d *driver, k K, m *mark, gets int) *entry[K, V] {
	s := t.s
	s.guard.Lock()
	if s.ended || t.m[k] != nil || t.fullLocked() {
		s.guard.Unlock()
		return nil
	}
	e := t.newLocked(k)
	e.markLocked(m)
	b := t.immediateLocked(d, e)
	b.write = true // it is the caller's, and nobody else cancels it
	s.stats.Gets += gets
	s.guard.Unlock()
	b.runAll()
	return e
}
