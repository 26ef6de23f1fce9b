package scope

import (
	"context"
	"iter"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Limit returns a Spawner that starts tasks on another, with at most n of them live at a time. Its Go accepts further functions, and
// starts them as tasks end, in order. So Go never suspends, as that of any Spawner. A function that has not started costs memory, but no
// task. A task counts until it ends, also while it is suspended.
//
// If on closes before an accepted function has started, the function runs on a goroutine. Limit panics if n is less than 1 or if on is
// nil.
//
//	err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
//		four := scope.Limit(4, suspend.Goroutines)
//		for _, url := range urls {
//			if err := s.Go(four, func(ctx context.Context) error { return fetch(ctx, url) }); err != nil {
//				return err
//			}
//		}
//		return nil
//	})
func Limit(n int, on suspend.Spawner) suspend.Spawner {
	check(on, true)
	if n < 1 {
		panic("scope: Limit of less than one task")
	}
	return &limited{on: on, free: n}
}

// limited: a function is started if a place is free, and otherwise waits for one.
//
// Invariant: waiting is empty while free is above 0.
// Debt: a task that ends gives its place to the first that waits, or frees it.
type limited struct {
	on suspend.Spawner

	mu      atomicx.Mutex
	free    int
	waiting []func()
}

// Go implements suspend.Spawner.
func (l *limited) Go(f func()) error {
	check(l.on, f != nil)
	l.mu.Lock()
	if l.free == 0 {
		l.waiting = append(l.waiting, f)
		l.mu.Unlock()
		return nil
	}
	l.free--
	l.mu.Unlock()
	started := false
	defer func() {
		if !started {
			l.next()
		}
	}()
	err := l.on.Go(l.task(f))
	started = err == nil
	return err
}

func (l *limited) task(f func()) func() {
	return func() {
		defer l.next() // also after a panic or a Goexit
		f()
	}
}

// next starts the first function that waits in the place of a task that has ended.
func (l *limited) next() {
	l.mu.Lock()
	if len(l.waiting) == 0 {
		l.free++
		l.waiting = nil
		l.mu.Unlock()
		return
	}
	f := l.waiting[0]
	l.waiting[0], l.waiting = nil, l.waiting[1:]
	l.mu.Unlock()
	if l.on.Go(l.task(f)) != nil {
		_ = suspend.Goroutines.Go(l.task(f))
	}
}

// Stream calls f with each value of in, in tasks on a scheduler, and yields the results in the order of in. At most n calls have begun
// without their results being yielded. The first error, in that order, is yielded and ends the sequence.
//
// The caller of the iterator suspends while the next result is missing. A break, an error and the end of ctx cancel the other calls, and
// the iterator returns when all have ended. If ctx ends first, the last error is the cancellation's. A call that does not return
// yields ErrAbandoned. Stream panics if n is less than 1, or if on, in or f is nil.
func Stream[T, U any](ctx context.Context, on suspend.Spawner, n int, in iter.Seq[T], f func(context.Context, T) (U, error)) iter.Seq2[U, error] {
	check(on, f != nil && in != nil)
	if n < 1 {
		panic("scope: Stream of less than one task")
	}
	return func(yield func(U, error) bool) {
		ended := false
		err := Run(ctx, func(ctx context.Context, s *Scope) error {
			var begun []*promise.Promise[U]
			first := func() (more bool) {
				p := begun[0]
				begun = begun[1:]
				v, err := p.Await(ctx)
				more = yield(v, err) && err == nil
				if !more {
					ended = true
					s.Cancel(nil)
				}
				return more
			}
			for v := range in {
				if len(begun) == n && !first() {
					return nil
				}
				p := promise.New[U]()
				err := s.child(on, func() {
					var u U
					err := ErrAbandoned // a failure like any other: in its turn
					defer s.leave()
					defer func() { _ = p.Resolve(u, err) }()
					u, err = f(s.ctx, v)
				})
				if err != nil {
					return err
				}
				begun = append(begun, p)
			}
			for len(begun) > 0 && first() {
			}
			ended = true
			return nil
		})
		if err != nil && !ended {
			var none U
			yield(none, err)
		}
	}
}
