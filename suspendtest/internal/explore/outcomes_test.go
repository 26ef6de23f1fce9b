package explore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// Each program has outcomes that occur only if another task runs between a Fill and the operation that follows it, or the end.
// The search finds all of them before it reports "all".
func TestOutcomes(t *testing.T) {
	type said = *promise.Promise[int]
	// beside performs op after the Fill, while another task cancels.
	beside := func(op func(ctx context.Context) string) func(w *explore.World, out func(string)) {
		return func(w *explore.World, out func(string)) {
			p, result := promise.New[int](), ""
			ctx, stop := cancel.New(bg)
			w.Go("a", func(context.Context) { _ = p.Fill(1); result = op(ctx) })
			w.Go("b", func(context.Context) { _, _ = p.Await(bg); stop(nil) })
			w.Check(func() error { out(result); return nil })
		}
	}
	state := func(err error) string {
		if errors.Is(err, context.Canceled) {
			return "canceled"
		}
		return fmt.Sprint(err)
	}
	main := func(f func(ctx context.Context, p said) string) func(w *explore.World, out func(string)) {
		return func(w *explore.World, out func(string)) {
			w.Go("main", func(ctx context.Context) { out(f(ctx, promise.New[int]())) })
		}
	}
	limited := func(first func(s *scope.Scope, one suspend.Spawner, f func()), end func(s *scope.Scope) error) func(w *explore.World, out func(string)) {
		return main(func(_ context.Context, p said) string {
			ran := false
			_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				one := scope.Limit(1, suspend.Here())
				first(s, one, func() { _ = p.Fill(1) })
				s.Go(one, func(context.Context) error { ran = true; return nil })
				_, _ = p.Await(bg)
				return end(s)
			})
			return fmt.Sprint(ran)
		})
	}
	child := func(s *scope.Scope, one suspend.Spawner, f func()) {
		s.Go(one, func(context.Context) error { f(); return nil })
	}
	for name, c := range map[string]struct {
		program func(w *explore.World, out func(string))
		want    string
	}{
		"Err":   {beside(func(ctx context.Context) string { return state(suspend.Err(ctx)) }), "<nil> canceled"},
		"Sleep": {beside(func(ctx context.Context) string { return state(suspend.Sleep(ctx, 0)) }), "<nil> canceled"},
		"Cause": {beside(func(ctx context.Context) string { return state(context.Cause(ctx)) }), "<nil> canceled"},
		"Run": {beside(func(ctx context.Context) string {
			return state(scope.Run(ctx, func(context.Context, *scope.Scope) error { return nil }))
		}), "<nil> canceled"},
		"cancel.AfterFunc": {func(w *explore.World, out func(string)) {
			p, stopped := promise.New[int](), false
			ctx, end := cancel.New(bg)
			stop := cancel.AfterFunc(ctx, func() {})
			w.Go("a", func(context.Context) { _ = p.Fill(1); stopped = stop() })
			w.Go("b", func(context.Context) { _, _ = p.Await(bg); end(nil) })
			w.Check(func() error { out(fmt.Sprint(stopped)); return nil })
		}, "false true"},
		"AfterFunc": {func(w *explore.World, out func(string)) {
			p, stopped, saw := promise.New[int](), false, false
			w.Go("a", func(context.Context) {
				stop := suspend.AfterFunc(suspend.Here(), 1, func() { _, saw, _ = p.Try() })
				_ = p.Fill(1)
				stopped = stop()
			})
			w.Check(func() error { out(fmt.Sprint(stopped, " ", saw)); return nil })
		}, "false false, false true, true false"},
		"Scope.Go": {main(func(_ context.Context, p said) (result string) {
			_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				s.Go(suspend.Here(), func(context.Context) error {
					_ = p.Fill(1)
					result = "never ran"
					s.Go(suspend.Here(), func(context.Context) error { result = "ran"; return nil })
					return nil
				})
				_, _ = p.Await(bg)
				s.Cancel(nil)
				return nil
			})
			return result
		}), "never ran, ran"},
		"OnRelease": {func(w *explore.World, out func(string)) {
			w.Go("main", func(context.Context) {
				p, ended := promise.New[int](), promise.New[string]()
				_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
					_ = suspend.Here().Go(func() {
						how := "late"
						defer func() { _ = recover(); _ = ended.Fill(how) }()
						_ = p.Fill(1)
						s.OnRelease(func() {})
						how = "in time"
					})
					_, _ = p.Await(bg)
					return nil
				})
				how, _ := ended.Await(bg)
				out(how)
			})
		}, "in time, late"},
		"a Limit, Cancel":  {limited(child, func(s *scope.Scope) error { s.Cancel(nil); return nil }), "false true"},
		"a Limit, failure": {limited(child, func(*scope.Scope) error { return errors.New("enough") }), "false true"},
		"a Limit, whose first task is no child": {limited(func(_ *scope.Scope, one suspend.Spawner, f func()) { _ = one.Go(f) }, func(s *scope.Scope) error {
			s.Cancel(nil)
			return nil
		}), "false true"},
		"a Limit, the context of the task": {main(func(ctx context.Context, _ said) (result string) {
			on, first, second := scope.Limit(1, suspend.Here()), "never", "never"
			_ = scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
				s.OnRelease(func() { result = first + " " + second })
				s.Go(on, func(ctx context.Context) error { first = state(ctx.Err()); return nil })
				s.Go(on, func(ctx context.Context) error { second = state(ctx.Err()); return nil })
				return nil
			})
			return result
		}), ", <nil> <nil>, <nil> canceled, <nil> never, canceled canceled, canceled never, never never"},
		"Shutdown": {main(func(_ context.Context, p said) string {
			ctx, stop := cancel.New(bg)
			stop(nil)
			g := scope.Open(bg, scope.Collect)
			g.Go(suspend.Here(), func(context.Context) error { _ = p.Fill(1); return nil })
			_, _ = p.Await(bg)
			return state(g.Shutdown(ctx))
		}), "<nil> canceled"},
		"idle.Group.Go": {func(w *explore.World, out func(string)) {
			p, n := promise.New[int](), 0
			w.Go("main", func(context.Context) {
				g := idle.New(suspend.Here(), func() { n++ })
				_ = g.Go(func() { _ = p.Fill(1) })
				_, _ = p.Await(bg)
				_ = g.Go(func() {})
			})
			w.Check(func() error { out(fmt.Sprint(n)); return nil })
		}, "1 2"},
		"keyed.Cache.Get": {func(w *explore.World, out func(string)) {
			p, loads := promise.New[int](), 0
			c := keyed.NewCache(func(context.Context, int) (int, error) { loads++; _ = p.Fill(1); return 0, nil }, keyed.CacheOptions{})
			w.Go("a", func(context.Context) { _, _ = c.Get(bg, 1) })
			w.Go("b", func(context.Context) { _, _ = p.Await(bg); _, _ = c.Get(bg, 1) })
			w.Check(func() error { out(fmt.Sprint(loads)); return nil })
		}, "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Executions: 5000}, func(w *explore.World) {
				c.program(w, func(outcome string) { seen[outcome] = true })
			})
			got := slices.Sorted(maps.Keys(seen))
			sep := " "
			if strings.Contains(c.want, ",") {
				sep = ", "
			}
			if r.Failure != nil || strings.Join(got, sep) != c.want {
				t.Errorf("%v, saw %q; %v", r, got, r.Failure)
			}
		})
	}
}
