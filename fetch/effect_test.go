package fetch_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/suspend"
)

// Effects with the same key get their own results, in order.
func TestEffectsWithEqualKeysAreAnsweredInOrder(t *testing.T) {
	for _, order := range [][]int{{11, 21, 12, 22}, {11, 12, 21, 22}, {21, 22, 11, 12}, {21, 11, 22, 12}} {
		e := fetch.NewEffect("effect", func(_ context.Context, b *fetch.Batch[int, int]) error {
			for _, answer := range order {
				b.Set(answer/10, answer)
			}
			b.Set(2, 29) // the last Set counts
			return nil
		}, fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			got, err := fetch.Map(ctx, []int{1, 2, 1, 2}, e.Do)
			require.Equal(t, []int{11, 21, 12, 29}, got, order)
			return err
		}, fetch.Options{}))
	}
}

// After an effect has called Forget, a read must not return the old state.
func TestForgetInAnEffect(t *testing.T) {
	value := 1
	src := fetch.ByMap("values", func(context.Context, []int) (map[int]int, error) { return map[int]int{1: value}, nil }, fetch.SourceOptions{})
	write := fetch.NewEffect("write", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		value = b.Keys()[0]
		src.Forget(ctx, 1)
		return nil
	}, fetch.SourceOptions{})
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
	}, fetch.Options{}))
}

// A replayed effect fails after the end of its session, like a real one.
func TestReplayedEffectAfterTheEnd(t *testing.T) {
	e := fetch.NewEffect("effect", func(context.Context, *fetch.Batch[int, int]) error { return nil }, fetch.SourceOptions{})
	r := &fetch.Recording{Sources: map[string][]fetch.Answer{"effect": {{Key: json.RawMessage("1"), Value: json.RawMessage("5")}}}}
	ctx, s := fetch.Open(t.Context(), fetch.Options{Replay: r})
	s.Close()
	_, err := e.Do(ctx, 1)
	require.ErrorIs(t, err, suspend.ErrEnded)
}
