package fetch

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/suspend"
)

// A Memo is a function of a key that may fetch, and whose results a session remembers. Make each Memo once with NewMemo, for
// example as a package variable.
type Memo[K comparable, V any] struct {
	name string
	f    func(ctx context.Context, k K) (V, error)
}

// NewMemo returns a Memo that calls f.
func NewMemo[K comparable, V any](name string, f func(ctx context.Context, k K) (V, error)) *Memo[K, V] {
	if f == nil {
		panic("fetch: nil function")
	}
	return &Memo[K, V]{name, f}
}

// Get returns the result of f for k. In a session, f runs once for each key, in the task of the first Get. Later Gets suspend
// until f has returned. An error of f is remembered like a value, see Transient, and a panic in f is raised in every Get.
//
// If ctx is already done, or is done before the result arrives, Get returns the error of the cancellation. If the caller was
// running f, the task that has waited longest runs f again. f runs again even if it returned a value, because the value may
// depend on cancelled fetches. Memos that wait for themselves or for each other fail with lazy.ErrRecursive, even across tasks.
func (m *Memo[K, V]) Get(ctx context.Context, k K) (V, error) {
	f := frameOf(ctx)
	if err := f.check(ctx); err != nil {
		return *new(V), err
	}
	checkKey(k)
	s := f.s
	s.guard.Lock()
	if s.ended {
		s.guard.Unlock()
		return *new(V), errEnded
	}
	t, ok := s.memos[m].(map[K]*memoized[V])
	if !ok {
		t = map[K]*memoized[V]{}
		if s.memos == nil {
			s.memos = map[any]any{}
		}
		s.memos[m] = t
	}
	v := t[k]
	if v == nil {
		v = &memoized[V]{}
		v.value = lazy.New(func(ctx context.Context) (V, error) {
			ctx = Label(ctx, m.name)
			if trail := frameOf(ctx).trail; trail != nil {
				defer func() { v.last.Store(trail.last.Load()) }()
			}
			x, err := m.f(ctx, k)
			switch cancelled := suspend.Err(ctx); {
			case cancelled != nil && err == nil: // x may depend on cancelled fetches
				return *new(V), cancelled
			case cancelled == nil && passes(err):
				s.guard.Lock()
				if t[k] == v {
					delete(t, k) // the next Get runs f again
				}
				s.guard.Unlock()
			}
			return x, err
		}, lazy.Restart)
		t[k] = v
	}
	s.guard.Unlock()
	x, err := v.value.Force(ctx)
	if f.trail != nil {
		f.trail.got(v.last.Load())
	}
	return x, err
}

// A memoized is a Memo's value for one key.
type memoized[V any] struct {
	value *lazy.Lazy[V]
	last  atomicx.Pointer[request] // the latest answer that f used; atomic because a cancelled Get may load it while f runs
}
