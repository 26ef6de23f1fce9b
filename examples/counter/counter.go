// Package counter is a net/http service that does not import Braid. Its tests run the service unchanged in a simulation: in memory over an
// unreliable network, and on a disk with crashes and partitions.
//
//	go test -v ./examples/counter
package counter

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// A Counter is an http.Handler that counts requests. Requests with the same id are counted once. A GET request returns the total. The zero
// Counter keeps the ids only in memory.
type Counter struct {
	Forgets  bool // a deliberate bug: repeated requests are counted again
	Unsynced bool // a deliberate bug: requests are answered before they are durable

	mu    sync.Mutex
	seen  map[string]bool
	total int
	disk  Disk
	end   int64
}

// A Disk stores the ids. An *os.File implements Disk.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// Open returns a Counter that starts with the ids on disk.
func Open(disk Disk) (*Counter, error) {
	c := &Counter{disk: disk}
	text, err := io.ReadAll(io.NewSectionReader(disk, 0, 1<<20))
	for {
		id, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole || bytes.IndexByte(id, 0) >= 0 { // the end of the data, or a line torn by a crash
			return c, err
		}
		c.add(string(id))
		c.end += int64(len(id)) + 1
		text = rest
	}
}

func (c *Counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodGet {
		fmt.Fprint(w, c.total)
		return
	}
	if id := r.URL.Query().Get("id"); c.Forgets || !c.seen[id] {
		if err := c.save(id); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		c.add(id)
	}
}

func (c *Counter) add(id string) {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[id] = true
	c.total++
}

// save makes id durable, so that a crash after the answer does not lose the id.
func (c *Counter) save(id string) error {
	if c.disk == nil {
		return nil
	}
	n, err := c.disk.WriteAt([]byte(id+"\n"), c.end)
	if err == nil && !c.Unsynced {
		err = c.disk.Sync()
	}
	if err == nil {
		c.end += int64(n)
	}
	return err
}

// Total returns the number of counted requests.
func (c *Counter) Total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}
