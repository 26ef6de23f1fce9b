package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// The story of a failure has a column for each task, with the operations and the lines of the source.
func TestStory(t *testing.T) {
	r := explore.Run(all, func(w *explore.World) {
		place := mvar.New[int]()
		w.Go("taker", func(context.Context) {
			v, _ := place.Take(bg)
			w.Log("has %d", v)
		})
		w.Go("x", func(context.Context) {
			_ = place.Put(bg, 7)
			panic("ouch")
		})
	})
	const want = `
taker                        x
begins
suspended in mvar.MVar.Take                story_test.go:19: v, _ := place.Take(bg)
                             begins
                             wakes taker
                             panics: ouch  story_test.go:24: panic("ouch")
`
	text := "\n" + strings.Join(r.Failure.Trace, "\n")
	for line := range strings.Lines(want) {
		if !strings.Contains(text, line) {
			t.Errorf("%s has no line %q", text, line)
		}
	}
}

// After a failure, the search looks for a shorter one with the same reason.
func TestTheShortestFailure(t *testing.T) {
	for shorter, want := range map[int]string{0: "a waits long", 100: "b is soon there"} {
		c := all
		c.Shorter = shorter
		r := explore.Run(c, func(w *explore.World) {
			n := 0
			w.Go("a", func(context.Context) {
				if n > 0 {
					w.Log("b is soon there")
					return
				}
				w.Log("a waits long")
				for range 5 {
					suspend.Yield()
				}
			})
			w.Go("b", func(context.Context) { n++ })
			w.Check(func() error { return errors.New("wrong") })
		})
		if text := r.Failure.Error(); !strings.Contains(text, want) {
			t.Errorf("%d: %s", shorter, text)
		}
		c.Replay = r.Failure.Replay
		if again := explore.Run(c, func(w *explore.World) { w.Check(func() error { return nil }) }); again.Executions != 1 {
			t.Error("more than one run")
		}
	}
}
