package beside

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/braidgo/braid/keyed"
)

// A cache loads each page once for all concurrent requests, and keeps it for a fixed time. Each request can be cancelled separately. Errors
// are not cached, so that the next request loads the page again.
type cache struct{ pages *keyed.Cache[string, string] }

func newCache(load func(context.Context, string) (string, error), keep time.Duration) *cache {
	return &cache{keyed.NewCache(load, keep)}
}

func (c *cache) get(ctx context.Context, path string) (string, error) { return c.pages.Get(ctx, path) }

func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := c.get(r.Context(), r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(w, text)
}
