package fetch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
)

func TestTraceOfTheBlog(t *testing.T) {
	b := newBlog()
	var trace *fetch.Trace
	err := fetch.Options{Trace: true}.Run(fetch.Label(t.Context(), "blog"), func(ctx context.Context) error {
		_, err := b.page(ctx)
		trace = fetch.Of(ctx).Trace()
		return err
	})
	require.NoError(t, err)
	t.Log("\n" + trace.String())
}
