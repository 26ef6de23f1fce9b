package fetch_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
)

// traced runs body and returns its trace.
func traced(t *testing.T, o fetch.Options, body func(ctx context.Context) error) (trace *fetch.Trace) {
	o.Trace = true
	require.NoError(t, fetch.Run(fetch.Label(t.Context(), t.Name()), func(ctx context.Context) error {
		err := body(ctx)
		trace = fetch.Of(ctx).Trace()
		return err
	}, o))
	return trace
}

// anyLine matches what differs between runs: lines, times and bars.
var anyLine = regexp.MustCompile(`(\w+_test\.go):\d+|\d+\.?\d* (ms|µs)|▇+`)

func TestPicture(t *testing.T) {
	b := newBlog()
	var trace *fetch.Trace
	synctest.Test(t, func(t *testing.T) { // in a bubble, where all batches take the same time
		trace = traced(t, fetch.Options{}, func(ctx context.Context) error {
			_, err := b.page(ctx)
			return err
		})
	})
	picture := anyLine.ReplaceAllString(trace.String(), "$1")
	picture = regexp.MustCompile(` +`).ReplaceAllString(picture, " ")
	require.Equal(t, strings.TrimPrefix(`
TestPicture: 3 rounds, 4 batches, 31 keys for 51 gets, 
 1 postIds 1 popular, main, topics blog_test.go, blog_test.go
 2 postViews 11 popular blog_test.go
 postInfo 11 main, topics blog_test.go
 3 postContent 8 popular 5, main 3 blog_test.go, blog_test.go
why 3: postIds (blog_test.go) → postViews of 11 (blog_test.go) → postContent 5 (blog_test.go)
`, "\n"), picture)

	// The lines are those of the calls in allInfo, mainPane, popular and details.
	require.Len(t, trace.Batches, 4)
	require.Len(t, trace.Batches[0].Lines, 2)
	require.Len(t, trace.Batches[3].Lines, 2)
	require.Equal(t, 3, trace.Why[2].Round)
	for i, b := range trace.Batches {
		require.LessOrEqual(t, b.Start, b.End)
		if i > 0 {
			require.LessOrEqual(t, trace.Batches[i-1].Start, b.Start)
		}
	}
}

// Two ordered runs have equal traces, except for the times.
func TestTracesAreEqual(t *testing.T) {
	from, to := programs(t, 100)
	for seed := from; seed < to; seed++ {
		p := newProgram(seed, seed%2 == 0)
		var pictures [2]string
		for i := range pictures {
			w := newWorld(p)
			_, _, s := p.evaluate(w, ways(nil)[0], fetch.Options{Trace: true})
			trace := s.Trace()
			for j := range trace.Batches {
				trace.Batches[j].Start, trace.Batches[j].End = 0, 0
			}
			pictures[i] = fmt.Sprint(trace.Batches, trace.Stats)
		}
		require.Equal(t, pictures[0], pictures[1], "seed %d", seed)
	}
}

func TestHints(t *testing.T) {
	src, other := newNumbers(fetch.SourceOptions{}), newBlog()
	trace := traced(t, fetch.Options{}, func(ctx context.Context) error {
		for k := range 4 {
			if _, err := src.Get(ctx, k); err != nil {
				return err
			}
		}
		return nil
	})
	require.Len(t, trace.Hints, 1)
	require.Regexp(t, `^rounds 1–4 have one key each, fetched by one task in a loop at trace_test.go:\d+: if the keys do not depend on each other, Map makes it one round$`, trace.Hints[0])

	trace = traced(t, fetch.Options{}, func(ctx context.Context) error {
		_, _ = src.Get(ctx, 1)
		_, err := other.views.Get(ctx, 1)
		return err
	})
	require.Len(t, trace.Hints, 1)
	require.Regexp(t, `^numbers and postViews \(trace_test.go:\d+, trace_test.go:\d+\) are fetched one after the other by one task: if they do not depend on each other, Two saves a round$`, trace.Hints[0])

	synctest.Test(t, func(t *testing.T) {
		slow := fetch.ByMap("slow", func(context.Context, []int) (map[int]int, error) {
			time.Sleep(180 * time.Millisecond)
			return nil, nil
		}, fetch.SourceOptions{})
		trace = traced(t, fetch.Options{}, func(ctx context.Context) error {
			return fetch.Together(ctx, func(ctx context.Context) error { _, _, err := slow.Find(ctx, 1); return err },
				func(ctx context.Context) error { // these wait for the round, and then for another one
					_, err := src.All(ctx, []int{1, 2})
					if err == nil {
						_, err = src.Get(ctx, 3)
					}
					return err
				})
		})
		require.Contains(t, trace.Hints, "slow answers in 180.0 ms, 1 task waited only for it in round 1: see Eager")
	})
}

// A batch has the lines of the calls that fetched its keys, even if such a call is in a function that another line calls.
func TestLines(t *testing.T) {
	src := fetch.ByMap("x", func(_ context.Context, ks []int) (map[int]int, error) {
		m := map[int]int{}
		for _, k := range ks {
			m[k] = k
		}
		return m, nil
	}, fetch.SourceOptions{})
	var want, got []string
	next := func() {
		_, _, line, _ := runtime.Caller(1)
		want = append(want, fmt.Sprint("trace_test.go:", line+1))
	}
	asks := func(ctx context.Context) {
		next()
		_, _ = src.Get(ctx, 1)
		next()
		_, _, _ = src.Find(ctx, 2)
		next()
		_, _ = src.All(ctx, []int{3, 4})
		next()
		_, _ = fetch.Map(ctx, []int{5, 6}, src.Get)
		next()
		_, _, _ = fetch.Two(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, 7) }, func(context.Context) (int, error) { return 0, nil })
	}
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		asks(ctx)
		for _, b := range fetch.Of(ctx).Trace().Batches {
			require.Len(t, b.Lines, 1)
			got = append(got, b.Lines[0])
		}
		return nil
	}, fetch.Options{Trace: true})
	require.Equal(t, want, got)
}

func TestNoTrace(t *testing.T) {
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		require.Nil(t, fetch.Of(ctx).Trace())
		require.Same(t, ctx, fetch.Label(ctx, "unused"))
		return nil
	}, fetch.Options{}))
	require.Nil(t, fetch.Of(t.Context()))
}

// Trace may be called at any time, and lists the batches that have returned by then.
func TestTraceOfASettledSession(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{Trace: true})
	ended := make(chan bool)
	for k := range 20 {
		go func() {
			for i := range 5 {
				_, _ = src.Get(fetch.Label(ctx, "resolver"), k+i)
			}
			ended <- true
		}()
	}
	for n := 0; n < 20; {
		select {
		case <-ended:
			n++
		default:
			_ = s.Trace().String()
			runtime.Gosched()
		}
	}
	s.Close()
	require.Contains(t, s.Trace().String(), "resolver")
	require.Contains(t, s.Trace().String(), "trace_test.go")
	require.Equal(t, 24, s.Stats().Keys)
}
