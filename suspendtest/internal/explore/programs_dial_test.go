//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() {
	programs = append(programs, dialPrograms...)
	boundedPrograms = append(boundedPrograms, largeDialPrograms...)
}

// These programs call the Open of a respool.Pool. The pool is closed at any time, and no call of Open remains.
var dialPrograms = []program{
	// The second Open gives its resource to the first Acquire, and the second Acquire gets the error of the first Open.
	{"respool, an Open fails", "2 × 1", func(w *explore.World) {
		var got dials
		p := got.pool()
		var errs [2]error
		for i, how := range []opens{failing, returning} {
			w.Go(fmt.Sprint("acquire", i), func(ctx context.Context) { errs[i] = got.acquires(ctx, p, how) })
		}
		w.OnIdle(lost)
		w.Check(func() error {
			if errs[1] == errOops && (errs[0] == errOops || errors.Is(errs[0], context.Canceled)) {
				return fmt.Errorf("the first Acquire got %w, and the second %w", errs[0], errs[1])
			}
			return got.right(p)
		})
	}},
	{"respool, an Open hangs", "2 × 1", func(w *explore.World) {
		var got dials
		p := got.pool()
		w.Go("hang", func(ctx context.Context) { _ = got.acquires(ctx, p, hanging) })
		got.closes(w, p)
	}},
	{"respool, an Open hangs, and another serves the last Acquire", "3 × 1", func(w *explore.World) {
		var got dials
		p := got.pool()
		w.Go("hang", func(ctx context.Context) { _ = got.acquires(ctx, p, hanging) })
		w.Go("open", func(ctx context.Context) { _ = got.acquires(ctx, p, returning) })
		got.closes(w, p)
	}},
}

var largeDialPrograms = []program{
	{"respool, an Open hangs, and a Release serves its Acquire", "3 × 1", func(w *explore.World) {
		var got dials
		p := got.pool()
		var held promise.Promise[int]
		w.Go("release", func(context.Context) {
			l, err := p.Acquire(bg)
			_ = held.Fill(0)
			if err == nil {
				l.Release()
			}
		})
		w.Go("hang", func(ctx context.Context) {
			_, _ = held.Await(bg)
			_ = got.acquires(ctx, p, hanging)
		})
		w.Go("close", func(context.Context) {
			_, _ = held.Await(bg)
			_ = p.Shutdown(bg)
		})
		got.ends(w, p)
	}},
	{"respool, an Open hangs, and its Acquire is served for one that was killed", "3 × 1", func(w *explore.World) {
		var got dials
		p := got.pool()
		goDoomed(w, 1, func(ctx context.Context, _ *doomed) { _ = got.acquires(ctx, p, returning) })
		w.Go("hang", func(ctx context.Context) { _ = got.acquires(ctx, p, hanging) })
		got.closes(w, p)
	}},
}

// An opens says how a call of Open ends. A hanging call ends with its context.
type opens int

const (
	returning opens = iota + 1
	failing
	hanging
)

// An opening is the context of an Acquire. It says how the call of Open ends.
type opening struct {
	cancellable
	how opens
}

type cancellable interface {
	context.Context
	AfterFunc(f func()) (stop func() bool)
}

func (o opening) Value(key any) any {
	if key == opens(0) {
		return o.how
	}
	return o.cancellable.Value(key)
}

// dials counts the live resources of a pool of two.
type dials struct{ live int }

func (o *dials) pool() *respool.Pool[int] {
	var never promise.Promise[int]
	return respool.New(respool.Options[int]{
		Max: 2,
		Open: func(ctx context.Context) (int, error) {
			switch ctx.Value(opens(0)) {
			case failing:
				return 0, errOops
			case hanging:
				return never.Await(ctx)
			}
			o.live++
			return 1, nil
		},
		Close: func(int) { o.live-- },
	})
}

// acquires acquires a resource and discards it, so that its Release serves no other Acquire.
func (o *dials) acquires(ctx context.Context, p *respool.Pool[int], how opens) error {
	l, err := p.Acquire(opening{ctx.(cancellable), how})
	if err == nil {
		l.Discard()
		l.Release()
	}
	return err
}

func (o *dials) closes(w *explore.World, p *respool.Pool[int]) {
	w.Go("close", func(context.Context) { _ = p.Shutdown(bg) })
	o.ends(w, p)
}

// ends checks that only an Acquire is left waiting, until it is cancelled.
func (o *dials) ends(w *explore.World, p *respool.Pool[int]) {
	acquires := []string{"hang", "open", "doomed"}
	w.OnIdle(func(waiting []string) error {
		return onlyIf(slices.ContainsFunc(waiting, func(name string) bool { return slices.Contains(acquires, name) }))
	})
	w.Check(func() error { return o.right(p) })
}

func (o *dials) right(p *respool.Pool[int]) error {
	return errors.Join(same(p.Stats().Leased, 0), same(p.Stats().Idle, o.live))
}
