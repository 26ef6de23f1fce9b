package scope

import (
	"context"
	"iter"

	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/producer"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Stream calls f with each value of the sequence in, each call in a new task, and yields the results in the order of the
// sequence. Each result is yielded as soon as it and all earlier results exist, even while in has no further value yet. At most
// n calls are running or have results that are not yet yielded. The first error, in that order, is yielded and ends the
// iteration. An error of in has its place in that order: it is yielded after the results of all earlier values. The value that
// comes with the error is dropped. For a sequence that cannot fail, see Lift.
//
// The iterator suspends its caller until the next result is available. A break, an error or the end of ctx cancels the other
// calls, and the iterator returns after all calls and in have ended. If ctx ends before the iteration, the last error is the
// cancellation error, even if in ends because of ctx. If a call does not return, its error is suspend.ErrAbandoned.
//
// The sequence runs in a task of its own, on the scheduler of the iterator's caller. It advances while the caller waits for a
// result, and is at most one value ahead of the calls. If a result exists before the next value does, in runs in parallel with
// the loop body. When the iteration ends, in ends too: as after a break, or, if it waits in an operation of this module, by
// runtime.Goexit, without an effect of the operation. Until then, an in that has failed waits in its yield. The iterator waits
// for an in that computes or that waits natively, such as on a Go channel. A value that was yielded to no call is dropped. A
// panic or runtime.Goexit of in continues in the caller.
//
// Since in is a task of its own, in must not wait for something that the caller gives back only after the next
// value, such as a lock. Both would wait until ctx ends. Package census reports such a deadlock of locks. Force of a lazy value
// and Get of a keyed.Cache return ErrRecursive if in calls them with the context of the function that ranges over the iterator.
// A stage does not notice it: in must not Do a task of a stage whose handler ranges over the iterator.
//
// If on is nil, the calls run on plain goroutines. Stream panics if n is less than 1, or if in or f is nil.
func Stream[T, U any](ctx context.Context, on suspend.Spawner, n int, in iter.Seq2[T, error], f func(context.Context, T) (U, error)) iter.Seq2[U, error] {
	check(f != nil && in != nil)
	if n < 1 {
		panic("scope: Stream with less than one task")
	}
	return func(yield func(U, error) bool) {
		ended := false // the loop body has ended the iteration, or knows the error
		err := Run(ctx, func(ctx context.Context, s *Scope) error {
			values := producer.Start(in)
			defer values.Stop()
			defer s.Cancel(nil)
			next, first := suspend.CaseOf(values.NextOp()), new(suspend.Case[U])
			var v T
			held := false                   // v is the next value, and n calls are under way
			var begun []*promise.Promise[U] // the calls whose results have not been yielded; first waits for begun[0]
			for more := true; more || len(begun) > 0; {
				var cases [2]suspend.Selectable
				if len(begun) > 0 {
					first.Set(begun[0].AwaitOp())
					cases[0] = first
				}
				if more && !held {
					values.Request()
					cases[1] = next
				}
				won, err := suspend.SelectOrdered(ctx, cases[:]...)
				switch won {
				case first:
					u, err := first.Result()
					if !yield(u, err) || err != nil {
						ended = true
						return nil
					}
					begun[0], begun = nil, begun[1:]
				case next:
					came := next.Value()
					v, more = came.Value, came.OK && came.Err == nil
					held = more
					if came.Err != nil { // is yielded in its place
						p := promise.New[U]()
						p.Fail(came.Err)
						begun = append(begun, p)
					}
				case nil:
					return err
				}
				if held && len(begun) < n {
					p := promise.New[U]()
					more, held = call(s, on, p, f, v), false
					begun = append(begun, p)
				}
			}
			return nil
		})
		if err == nil && !ended {
			err = suspend.Err(ctx) // in may have ended because of ctx, before the context of the scope has
		}
		if err != nil && !ended {
			var none U
			yield(none, err)
		}
	}
}

// call starts a child that fills p with the results of f(v). If the child is refused, p fails in the place of the result, and call
// returns false.
func call[T, U any](s *Scope, on suspend.Spawner, p *promise.Promise[U], f func(context.Context, T) (U, error), v T) (started bool) {
	started = true
	s.child(s, on, func() {
		defer s.removeMember()
		abandoned.Watch(errAbandoned, func() { p.Resolve(f(s.ctx, v)) }, func(err error) { p.Fail(err) })
	}, func(err error, _ bool) {
		started = false
		p.Fail(err)
	})
	return started
}

// Lift returns a sequence of the values of in, each with a nil error. Stream and stage.Each take such a sequence.
//
//	scope.Stream(ctx, pool, 8, scope.Lift(slices.Values(names)), load)
//
// Lift panics if in is nil.
func Lift[T any](in iter.Seq[T]) iter.Seq2[T, error] {
	check(in != nil)
	return func(yield func(T, error) bool) {
		for v := range in {
			if !yield(v, nil) {
				return
			}
		}
	}
}
