package beside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/panjf2000/gnet/v2"
)

// partition moves the elements that are smaller than a pivot to its left, and returns the index of the pivot.
func partition(v []int) int {
	last := len(v) - 1
	v[len(v)/2], v[last] = v[last], v[len(v)/2]
	i := 0
	for j := range last {
		if v[j] < v[last] {
			v[i], v[j] = v[j], v[i]
			i++
		}
	}
	v[i], v[last] = v[last], v[i]
	return i
}

// fill computes a row of the Mandelbrot set.
func fill(rows [][]byte, row int) {
	for column := range rows[row] {
		z, c := 0i, complex(3*float64(column)/float64(len(rows[row]))-2, 2*float64(row)/float64(len(rows))-1)
		for n := range byte(100) {
			if z = z*z + c; real(z)*real(z)+imag(z)*imag(z) > 4 {
				rows[row][column] = n + 1
				break
			}
		}
	}
}

// A store maps books to authors. It records the ids of each call of load.
type store struct {
	mu      sync.Mutex
	batches [][]int
}

func (s *store) load(_ context.Context, ids []int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, ids)
	found := make([]int, len(ids))
	for i, id := range ids {
		found[i] = id % 100
	}
	return found
}

// answer computes the answer to a request.
func answer(line string) string { return fmt.Sprintf("%d\n", len(line)) }

// lines removes the complete lines from a connection's buffer and yields them.
func lines(c gnet.Conn) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			b, _ := c.Peek(-1)
			n := bytes.IndexByte(b, '\n')
			if n < 0 {
				return
			}
			line := string(b[:n])
			_, _ = c.Discard(n + 1)
			if !yield(line) {
				return
			}
		}
	}
}

// host returns the host name in the address of a page, such as a.org for a.org/x.
func host(page string) string { name, _, _ := strings.Cut(page, "/"); return name }

var errClosed = errors.New("closed")

// A none is a result without a value.
type none = struct{}

// A writer writes the records of a batch to a disk.
type writer func(records []string) error

// A job is a function to run. A more urgent job runs first.
type job struct {
	urgency int
	run     func(ctx context.Context)
}

// jobs is a heap with the most urgent job first.
type jobs []job

func (h jobs) Len() int           { return len(h) }
func (h jobs) Less(i, j int) bool { return h[i].urgency > h[j].urgency }
func (h jobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *jobs) Push(j any)        { *h = append(*h, j.(job)) }

func (h *jobs) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = job{}
	*h = (*h)[:last]
	return j
}

// A conn is a connection to a database.
type conn interface{ close() }

// A lease never has more than one holder. It may be stored in etcd or in NATS, for example.
type lease interface {
	take() (held bool, err error) // acquires or renews the lease
}

var errLost = errors.New("the lease is lost")
