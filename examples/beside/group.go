package beside

import (
	"context"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// sizes asks for the sizes of files, four at a time. The first error ends the rest.
func sizes(ctx context.Context, files []string, size func(context.Context, string) (int, error)) ([]int, error) {
	return scope.Map(ctx, scope.Limit(4, suspend.Goroutines), files, size)
}
