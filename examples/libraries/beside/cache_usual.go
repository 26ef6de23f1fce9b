package beside

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

type cacheUsual struct {
	pages sync.Map // maps a path to a pageUsual; expired pages are never removed
	group singleflight.Group
	load  func(ctx context.Context, path string) (string, error)
	keep  time.Duration
}

type pageUsual struct {
	text  string
	until time.Time
}

func newCacheUsual(load func(context.Context, string) (string, error), keep time.Duration) *cacheUsual {
	return &cacheUsual{load: load, keep: keep}
}

func (c *cacheUsual) get(ctx context.Context, path string) (string, error) {
	if page, ok := c.pages.Load(path); ok && time.Now().Before(page.(pageUsual).until) {
		return page.(pageUsual).text, nil
	}
	result := c.group.DoChan(path, func() (any, error) {
		text, err := c.load(context.WithoutCancel(ctx), path) // the load continues after all requests are cancelled
		if err == nil {
			c.pages.Store(path, pageUsual{text, time.Now().Add(c.keep)})
		}
		return text, err
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *cacheUsual) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := c.get(r.Context(), r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(w, text)
}
