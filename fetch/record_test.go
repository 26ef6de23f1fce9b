package fetch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
)

// Errors and panics are in a recording, so that a replay returns them, and not an error of JSON.
func TestReplayOfErrorsAndPanics(t *testing.T) {
	for name, load := range map[string]func(context.Context, *fetch.Batch[int, *int]) error{
		"error":                func(context.Context, *fetch.Batch[int, *int]) error { return errOdd },
		"error without a text": func(context.Context, *fetch.Batch[int, *int]) error { return errors.New("") },
		"panic":                func(context.Context, *fetch.Batch[int, *int]) error { panic("odd") },
		"panic without a text": func(context.Context, *fetch.Batch[int, *int]) error { panic("") },
		"nil":                  func(_ context.Context, b *fetch.Batch[int, *int]) error { b.Set(1, nil); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			src := fetch.New("source", load, fetch.SourceOptions{})
			get := func(ctx context.Context) (text string) {
				defer func() {
					if p := recover(); p != nil {
						text = fmt.Sprint("panic ", p)
					}
				}()
				v, err := src.Get(ctx, 1)
				return fmt.Sprint(v, err)
			}
			var was, is string
			var kept []byte
			require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
				was = get(ctx)
				r, err := fetch.Of(ctx).Record()
				require.NoError(t, err)
				kept, err = json.Marshal(r)
				return err
			}, fetch.Options{}))
			var r fetch.Recording
			require.NoError(t, json.Unmarshal(kept, &r))
			replay := fetch.Options{Replay: &r, Trace: true, OnBatch: func(context.Context, fetch.BatchInfo) (context.Context, func(error)) {
				panic("no source is called")
			}}
			require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
				is = get(ctx)
				require.Empty(t, fetch.Of(ctx).Trace().Batches)
				require.Zero(t, fetch.Of(ctx).Stats().Batches)
				return nil
			}, replay))
			require.Equal(t, was, is)
		})
	}
}

// A replay has one value for each key. It cannot know a value that was read after a Forget, because an Effect or a source may
// have called it.
func TestReplayOfAForgottenKey(t *testing.T) {
	n := 0
	src := fetch.New("counter", func(_ context.Context, b *fetch.Batch[int, int]) error { n++; b.Set(1, n); return nil }, fetch.SourceOptions{})
	var r *fetch.Recording
	program := func(got *[2]int) func(ctx context.Context) error {
		return func(ctx context.Context) (err error) {
			for i := range got {
				if got[i], err = src.Get(ctx, 1); err != nil {
					return err
				}
				src.Forget(ctx, 1+i) // the second Get has another key
			}
			r, err = fetch.Of(ctx).Record()
			return err
		}
	}
	var was, is [2]int
	require.NoError(t, fetch.Run(t.Context(), program(&was), fetch.Options{}))
	require.NoError(t, fetch.Run(t.Context(), program(&is), fetch.Options{Replay: r}))
	require.Equal(t, [2]int{1, 2}, was)
	require.Equal(t, [2]int{2, 2}, is, "the last one")
}
