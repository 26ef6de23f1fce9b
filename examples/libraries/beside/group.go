package beside

import (
	"context"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// sizes returns the size of each file. At most four calls of the function size run in parallel. The first error cancels the rest.
func sizes(ctx context.Context, files []string, size func(context.Context, string) (int, error)) ([]int, error) {
	return scope.Map(ctx, scope.Limit(4, suspend.Goroutines), files, size)
}
