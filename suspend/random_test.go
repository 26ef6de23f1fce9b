package suspend_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// The random numbers of a task depend on the seed of its scheduler. Without a seed they differ.
func TestRandom(t *testing.T) {
	draw := func() string {
		r := rand.New(suspend.Random())
		return fmt.Sprint(r.Uint64(), r.Uint64())
	}
	in := func(seed uint64) (numbers string) {
		require.NoError(t, random.New(random.Options{Seed: seed}).Run(context.Background(), func(context.Context) error { numbers = draw(); return nil }))
		return numbers
	}
	require.Equal(t, in(1), in(1))
	require.NotEqual(t, in(1), in(2))
	require.NotEqual(t, draw(), draw())
}

// The jitter is the same each time a simulation repeats a run.
func ExampleRandom() {
	for range 2 {
		_ = random.New(random.Options{Seed: 1}).Run(context.Background(), func(context.Context) error {
			fmt.Println(rand.New(suspend.Random()).IntN(100) < 100)
			return nil
		})
	}

	// Output:
	// true
	// true
}
