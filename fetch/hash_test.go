package fetch_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A key that cannot be hashed panics in the task that has it, and other requests continue. If the map panicked while the guard is
// held, they would hang, and so would the end of the Run.

// hurtsNobody runs bad, which must panic, and then fetches a key in the same session.
func hurtsNobody(t *testing.T, o fetch.Options, bad func(ctx context.Context)) {
	defer schedtest.Within(t, schedtest.Deadline)()
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		require.Panics(t, func() { bad(ctx) })
		if o.Replay != nil {
			return nil
		}
		return getter(newNumbers(fetch.SourceOptions{}), 1)(ctx)
	}, o))
}

// A map never finds a NaN again. It could also confuse a NaN with the first key of a crowd, whose value may belong to another
// session.
func TestKeyThatIsNotItself(t *testing.T) {
	type place struct{ lat, lon float64 }
	src := fetch.ByMap("places", func(context.Context, []place) (map[place]string, error) { return nil, nil }, fetch.SourceOptions{})
	shared := fetch.Shared(src, 1)
	effect := fetch.NewEffect("effect", func(context.Context, *fetch.Batch[place, int]) error { return nil }, fetch.SourceOptions{})
	memo := fetch.NewMemo("memo", func(context.Context, place) (int, error) { return 1, nil })
	nan, fine := place{math.NaN(), 8}, place{50, 8}
	for name, bad := range map[string]func(ctx context.Context){
		"Get":        func(ctx context.Context) { _, _ = src.Get(ctx, nan) },
		"Find":       func(ctx context.Context) { _, _, _ = src.Find(ctx, nan) },
		"All":        func(ctx context.Context) { _, _ = src.All(ctx, []place{fine, nan}) },
		"AllSettled": func(ctx context.Context) { _, _ = src.AllSettled(ctx, []place{fine, nan}) },
		"Prime":      func(ctx context.Context) { src.Prime(ctx, nan, "") },
		"Forget":     func(ctx context.Context) { src.Forget(ctx, nan) },
		"Shared":     func(ctx context.Context) { _, _ = shared.AllSettled(ctx, []place{fine, nan}) },
		"Effect":     func(ctx context.Context) { _, _ = effect.Do(ctx, nan) },
		"Memo":       func(ctx context.Context) { _, _ = memo.Get(ctx, nan) },
	} {
		t.Run(name, func(t *testing.T) {
			hurtsNobody(t, fetch.Options{}, func(ctx context.Context) {
				defer func() {
					v := recover()
					require.Equal(t, "fetch: a key that is not equal to itself, such as NaN", v)
					panic(v)
				}()
				bad(ctx)
			})
		})
	}
}

func TestMemoOfAKeyThatCannotBeHashed(t *testing.T) {
	m := fetch.NewMemo("any", func(context.Context, any) (int, error) { return 1, nil })
	hurtsNobody(t, fetch.Options{}, func(ctx context.Context) { _, _ = m.Get(ctx, []int{1}) })
}

func TestSharedKeyThatCannotBeHashed(t *testing.T) {
	src := fetch.Shared(fetch.ByMap("any", func(context.Context, []any) (map[any]int, error) { return nil, nil }, fetch.SourceOptions{}), 1)
	hurtsNobody(t, fetch.Options{}, func(ctx context.Context) { _, _ = src.Get(ctx, []int{1}) })
}

func TestEffectOfAKeyThatCannotBeHashed(t *testing.T) {
	e := fetch.NewEffect("any", func(context.Context, *fetch.Batch[any, int]) error { return nil }, fetch.SourceOptions{})
	do := func(ctx context.Context) { _, _ = e.Do(ctx, []int{1}) }
	hurtsNobody(t, fetch.Options{}, do)
	hurtsNobody(t, fetch.Options{Replay: &fetch.Recording{}}, do)
}
