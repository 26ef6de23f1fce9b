package fetch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A key that cannot be hashed panics in the task that has it, and every other request goes on: the panic of a map with the guard held
// would hang them, and the end of the Run.

// hurtsNobody runs bad, which has to panic, and then asks for a key of the same session.
func hurtsNobody(t *testing.T, o fetch.Options, bad func(ctx context.Context)) {
	defer schedtest.Within(t, schedtest.Deadline)()
	require.NoError(t, o.Run(t.Context(), func(ctx context.Context) error {
		require.Panics(t, func() { bad(ctx) })
		if o.Replay != nil {
			return nil
		}
		return getter(newNumbers(), 1)(ctx)
	}))
}

func TestSharedKeyThatCannotBeHashed(t *testing.T) {
	src := fetch.Shared(fetch.ByMap("any", func(context.Context, []any) (map[any]int, error) { return nil, nil }), 1)
	hurtsNobody(t, fetch.Options{}, func(ctx context.Context) { _, _ = src.Get(ctx, []int{1}) })
}

func TestEffectOfAKeyThatCannotBeHashed(t *testing.T) {
	e := fetch.NewEffect("any", func(context.Context, *fetch.Batch[any, int]) error { return nil })
	do := func(ctx context.Context) { _, _ = e.Do(ctx, []int{1}) }
	hurtsNobody(t, fetch.Options{}, do)
	hurtsNobody(t, fetch.Options{Replay: &fetch.Recording{}}, do)
}
