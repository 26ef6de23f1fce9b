// Package counter is a service on net/http that knows nothing of Braid. Its test runs it in a simulation as it is.
//
//	go test -v ./examples/counter
package counter

import (
	"net/http"
	"sync"
)

// A Counter is an http.Handler. It counts requests, each id once.
type Counter struct {
	Forgets bool // the mistake: a request that is repeated is counted again

	mu    sync.Mutex
	seen  map[string]bool
	total int
}

func (c *Counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	if id := r.URL.Query().Get("id"); c.Forgets || !c.seen[id] {
		c.seen[id] = true
		c.total++
	}
}

// Total returns how many were counted.
func (c *Counter) Total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}
