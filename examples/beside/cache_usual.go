package beside

import (
	"context"
	"io"
	"net/http"
	"sync"

	"golang.org/x/sync/singleflight"
)

type cacheUsual struct {
	pages sync.Map // of string
	group singleflight.Group
	load  func(ctx context.Context, path string) (string, error)
}

func newCacheUsual(load func(context.Context, string) (string, error)) *cacheUsual {
	return &cacheUsual{load: load}
}

func (c *cacheUsual) get(ctx context.Context, path string) (string, error) {
	if text, ok := c.pages.Load(path); ok {
		return text.(string), nil
	}
	result := c.group.DoChan(path, func() (any, error) {
		text, err := c.load(context.WithoutCancel(ctx), path) // goes on when all requests have given up
		if err == nil {
			c.pages.Store(path, text)
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
