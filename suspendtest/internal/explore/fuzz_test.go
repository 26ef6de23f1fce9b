package explore_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// For any replay string, there is one run or none. The report of a run has a string that repeats it.
func FuzzReplay(f *testing.F) {
	for _, s := range []string{"*.*.", "2.*.0103", "0.0.zzz", "*.1.000011", "..", "1.2.3.4", "1.2.0.4", "1.2.300.4", "r.*.1.0", "4294967296.0.", "-1.0.", "+1.0.", "2.*.0103\n", "é.*.1", "r.*.01"} {
		f.Add(s)
	}
	always := errors.New("always")
	run := func(replay string) explore.Result {
		return explore.Run(explore.Config{Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Replay: replay}, func(w *explore.World) {
			m := mvar.New[int]()
			w.Go("taker", func(ctx context.Context) { _, _ = m.Take(ctx) })
			w.Go("putter", func(ctx context.Context) { _ = m.Put(ctx, 1) })
			w.Check(func() error { return always })
		})
	}
	f.Fuzz(func(t *testing.T, replay string) {
		if replay == "" {
			return // begins a search
		}
		r := run(replay)
		if r.Failure == nil || r.Executions > 1 {
			t.Fatalf("%q: %+v", replay, r)
		}
		if r.Executions == 0 {
			return // not a replay string
		}
		again := run(r.Failure.Replay)
		if again.Failure == nil || again.Executions != 1 || again.Failure.Replay != r.Failure.Replay || again.Failure.Reason != r.Failure.Reason ||
			!slices.Equal(again.Failure.Trace, r.Failure.Trace) {
			t.Errorf("%q: %+v, and named so: %+v", replay, r.Failure, again.Failure)
		}
	})
}
