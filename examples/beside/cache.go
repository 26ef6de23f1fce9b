package beside

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/braidgo/braid/lazy"
)

// A cache loads each page once, however many requests ask for it. Each request may give up, and an error is not kept.
type cache struct {
	pages sync.Map // of *lazy.Lazy[string]
	load  func(ctx context.Context, path string) (string, error)
}

func newCache(load func(context.Context, string) (string, error)) *cache { return &cache{load: load} }

func (c *cache) get(ctx context.Context, path string) (string, error) {
	page := lazy.New(func(ctx context.Context) (string, error) { return c.load(ctx, path) }, lazy.Restart)
	if known, loaded := c.pages.LoadOrStore(path, page); loaded {
		page = known.(*lazy.Lazy[string])
	}
	text, err := page.Force(ctx)
	if _, ok, failed := page.Value(); ok && failed != nil {
		c.pages.CompareAndDelete(path, page)
	}
	return text, err
}

func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := c.get(r.Context(), r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(w, text)
}
