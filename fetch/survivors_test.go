package fetch_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// A session comes after a waiting crowd was cancelled. It gets its values, and not the cancellation of that crowd.
func TestSharedAfterACrowdWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		src := fetch.Shared(fetch.ByMap("s", func(_ context.Context, ks []int) (map[int]int, error) {
			if ks[0] == 1 {
				<-let
			}
			return map[int]int{ks[0]: ks[0]}, nil
		}, fetch.SourceOptions{}), 1)
		get := func(ctx context.Context, k int) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- fetch.Run(ctx, func(ctx context.Context) error { _, err := src.Get(ctx, k); return err }, fetch.Options{})
			}()
			synctest.Wait()
			return done
		}
		first := get(t.Context(), 1)
		ctx, cancel := context.WithCancel(t.Context())
		second := get(ctx, 2)
		cancel()
		require.ErrorIs(t, <-second, context.Canceled)
		third := get(t.Context(), 3)
		close(let)
		require.NoError(t, <-first)
		require.NoError(t, <-third, "nobody has cancelled this session")
		require.NoError(t, src.Shutdown(t.Context()))
	})
}

// A Shared source of an Inline source runs on a goroutine of its own, so that it does not delay the tasks of the session that
// asked first.
func TestSharedIsNotInline(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	went := make(chan struct{})
	src := fetch.Shared(fetch.ByMap("s", func(_ context.Context, ks []int) (map[int]int, error) {
		<-went
		return map[int]int{1: 1}, nil
	}, fetch.SourceOptions{Inline: true}), 1)
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		return fetch.Together(ctx,
			func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err },
			func(ctx context.Context) error {
				_, err := newNumbers(fetch.SourceOptions{}).Get(ctx, 1)
				close(went)
				return err
			})
	}, fetch.Options{Eager: true}))
}

// A Recording that an editor or a formatter has indented is still valid.
func TestIndentedRecording(t *testing.T) {
	type key struct{ A, B int }
	src := fetch.ByMap("s", func(_ context.Context, ks []key) (map[key]int, error) { return map[key]int{ks[0]: 7}, nil }, fetch.SourceOptions{})
	var again fetch.Recording
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.Get(ctx, key{1, 2})
		require.NoError(t, err)
		r, err := fetch.Of(ctx).Record()
		require.NoError(t, err)
		text, err := json.MarshalIndent(r, "", "   ")
		require.NoError(t, err)
		return json.Unmarshal(text, &again)
	}, fetch.Options{}))
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		v, err := src.Get(ctx, key{1, 2})
		require.Equal(t, 7, v)
		return err
	}, fetch.Options{Replay: &again}))
}

// A label must not hide that a context belongs to a source, whose Get would wait for itself.
func TestLabelInASource(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	other := newNumbers(fetch.SourceOptions{})
	src := fetch.New("s", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		_, err := other.Get(fetch.Label(ctx, "label"), 1)
		return err
	}, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.Get(ctx, 1)
		require.ErrorIs(t, err, fetch.ErrInSource)
		return nil
	}, fetch.Options{Trace: true}))
}

// A refusing scheduler refuses all but a few tasks.
type refusing struct{ left atomic.Int32 }

func (r *refusing) Go(f func()) error {
	if r.left.Add(-1) < 0 {
		return errOdd
	}
	return suspend.Goroutines.Go(f)
}

// If the task of an item is refused, the item runs in the task of its Map.
func TestRefusedTasks(t *testing.T) {
	for tasks := range int32(4) {
		defer schedtest.Within(t, schedtest.Deadline)()
		on := &refusing{}
		on.left.Store(1 + tasks)
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			vs, err := fetch.Map(ctx, []int{1, 2, 3}, newNumbers(fetch.SourceOptions{}).Get)
			require.Len(t, vs, 3)
			return err
		}, fetch.Options{On: on}))
	}
}

// A source that closes its own session panics, because it would wait for itself.
func TestCloseInASource(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, o := range []fetch.SourceOptions{{}, {Inline: true}, {Immediate: true}, {Immediate: true, Inline: true}} {
		src := fetch.New("s", func(_ context.Context, b *fetch.Batch[*fetch.Session, int]) error {
			b.Keys()[0].Close()
			return nil
		}, o)
		closes := func(ctx context.Context) error {
			require.PanicsWithValue(t, "fetch: Close of a session called by one of its sources", func() { _, _ = src.Get(ctx, fetch.Of(ctx)) })
			_, err := newNumbers(fetch.SourceOptions{}).Get(ctx, 1) // the session still works
			return err
		}
		require.NoError(t, fetch.Run(t.Context(), closes, fetch.Options{}))
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		require.NoError(t, closes(ctx))
		s.Close()
	}
}
