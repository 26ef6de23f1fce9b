package fetch_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
)

// Each Do would have got the result of another with the same key.
func TestEffectsWithEqualKeysAreAnsweredInOrder(t *testing.T) {
	for _, order := range [][]string{{"a1", "b1", "a2", "b2"}, {"a1", "a2", "b1", "b2"}, {"b1", "b2", "a1", "a2"}, {"b1", "a1", "b2", "a2"}} {
		e := fetch.NewEffect("effect", func(_ context.Context, b *fetch.Batch[string, string]) error {
			for _, answer := range order {
				b.Set(answer[:1], answer)
			}
			b.Set("b", "again") // the last counts
			return nil
		})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			got, err := fetch.Map(ctx, []string{"a", "b", "a", "b"}, e.Do)
			require.Equal(t, []string{"a1", "b1", "a2", "again"}, got, order)
			return err
		}))
	}
}

// A read after a write would have got the state before it.
func TestForgetInAnEffect(t *testing.T) {
	value := 1
	src := fetch.ByMap("values", func(context.Context, []int) (map[int]int, error) { return map[int]int{1: value}, nil })
	write := fetch.NewEffect("write", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		value = b.Keys()[0]
		src.Forget(ctx, 1)
		return nil
	})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		get := func(want int) {
			v, err := src.Get(ctx, 1)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		get(1)
		_, err := write.Do(ctx, 7)
		require.ErrorIs(t, err, fetch.ErrNotFound)
		get(7)

		value = 8
		done, cancel := context.WithCancel(ctx)
		cancel()
		src.Forget(done, 1)
		get(8)
		return nil
	}))
}

// A recording would have answered after the end of its session.
func TestReplayedEffectAfterTheEnd(t *testing.T) {
	e := fetch.NewEffect("effect", func(context.Context, *fetch.Batch[int, int]) error { return nil })
	r := &fetch.Recording{Sources: map[string][]fetch.Answer{"effect": {{Key: json.RawMessage("1"), Value: json.RawMessage("5")}}}}
	ctx, s := fetch.Open(t.Context(), fetch.Options{Replay: r})
	s.Close()
	_, err := e.Do(ctx, 1)
	require.ErrorIs(t, err, fetch.ErrEnded)
}
