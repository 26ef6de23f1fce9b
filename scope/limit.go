package scope

import (
	"context"
	"iter"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Limit returns a Spawner that starts tasks on another, of which at most n are live. Its Go accepts further functions,
// and starts them as tasks end, in order. So Go never suspends, like the Go of any Spawner. A function that has not
// started costs memory, but no task. A task counts until it ends, also while it is suspended.
//
// A function that waits, and that Scope.Go, Map, First or Stream has given, is withdrawn when its scope is cancelled:
// it never runs. A function that was given to Go of the Limit itself, or by way of Scope.On, runs in any case. So does
// a function that comes by way of another package's Spawner, such as an idle.Group, but its context is done. If on
// closes before an accepted function has started, the function runs on a goroutine.
//
// A task under a Limit must not wait for a function that waits in the same Limit: a Map over the caller's own Limit may wait for the caller's
// place. Such waits end when their contexts do, and not before, so inner tasks must have a separate Limit.
//
// Limit offers the capabilities of on, see suspend.As. What is not a task does not count: callbacks, and functions of Blocking. Limit
// panics if n is less than 1 or if on is nil.
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
// Debt: a task that ends, and a function that is withdrawn with its place, gives the place to the first that waits, or frees it.
type limited struct {
	on suspend.Spawner

	mu      atomicx.Mutex
	free    int
	waiting dlist.List[waiting]
}

// A waiting is a function without a place. The Limit that takes it off the list, under mu, starts it or withdraws it.
type waiting struct {
	f    func() // under the profiler labels of its caller
	of   origin
	stop func() bool // cancels the call that withdraws it; guarded by mu, nil until the call is made
}

// An origin is the cancellable caller that a function comes from.
type origin interface {
	context() context.Context
	withdrawn() // f never runs, since the context has ended
}

// A holdingBack is a Spawner that may hold a function back, for the origin to withdraw it. A nil origin does not.
type holdingBack interface {
	goFor(of origin, f func()) error
}

// goFor starts f, which comes from of, on on.
func goFor(of origin, on suspend.Spawner, f func()) error {
	if h, ok := on.(holdingBack); ok {
		return h.goFor(of, f)
	}
	return on.Go(f)
}

// Unwrap offers the capabilities of on, see suspend.As.
func (l *limited) Unwrap() suspend.Spawner { return l.on }

// Go implements suspend.Spawner.
func (l *limited) Go(f func()) error { return l.goFor(nil, f) }

func (l *limited) goFor(of origin, f func()) error {
	check(l.on, f != nil)
	if of != nil { // the end of a context withdraws f, unless a place is free first
		preempt.Looks(preempt.Members)
	}
	l.mu.Lock()
	if l.free == 0 {
		w := &dlist.Node[waiting]{Value: waiting{f: under(labels.Here(), f), of: of}}
		l.waiting.Push(w)
		l.mu.Unlock()
		if of != nil {
			l.watch(w)
		}
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
	err := l.start(of, f)
	started = err == nil
	return err
}

// under returns f under the labels s, and under no others. The task whose place f has may have some.
func under(s labels.Set, f func()) func() {
	return func() {
		s.Put()
		f()
	}
}

// watch has w withdrawn when its context ends.
func (l *limited) watch(w *dlist.Node[waiting]) {
	stop := cancel.AfterFunc(w.Value.of.context(), func() {
		l.mu.Lock()
		waits := l.waiting.Remove(w)
		l.mu.Unlock()
		if waits {
			w.Value.of.withdrawn()
		}
	})
	l.mu.Lock()
	waits := l.waiting.Has(w)
	if waits {
		w.Value.stop = stop
	}
	l.mu.Unlock()
	if !waits { // w has a place by now, or is withdrawn
		stop()
	}
}

// start starts f in a place.
func (l *limited) start(of origin, f func()) error {
	if of != nil {
		of = &placed{of, l}
	}
	return goFor(of, l.on, func() {
		defer l.next() // runs even after a panic or a Goexit
		f()
	})
}

// A placed function has a place in l, and waits in the Limit below.
type placed struct {
	origin
	l *limited
}

func (p *placed) withdrawn() {
	p.l.next()
	p.origin.withdrawn()
}

// next gives a place that is free again to the first function that waits. It withdraws those before whose contexts have ended: to start them,
// for the Limit below to withdraw them, would call next again for each, and nest as deep as there are functions.
func (l *limited) next() {
	preempt.Releases(preempt.Members)
	for {
		l.mu.Lock()
		n := l.waiting.Pop()
		if n == nil {
			l.free++
			l.mu.Unlock()
			return
		}
		w := n.Value
		l.mu.Unlock()
		if w.stop != nil {
			w.stop()
		}
		if w.of != nil && w.of.context().Err() != nil {
			w.of.withdrawn()
			continue
		}
		if l.start(w.of, w.f) != nil {
			_ = suspend.Goroutines.Go(func() { defer l.next(); w.f() })
		}
		return
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
				err := s.child(s, on, func() {
					var u U
					err := ErrAbandoned // a failure like any other: in its turn
					defer s.leave()
					defer func() { p.Resolve(u, err) }()
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
