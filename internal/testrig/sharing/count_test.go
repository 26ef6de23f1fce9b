//go:build explore

package sharing

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/atomicx"
)

// A count is the atomicx.Tracer of one run. It counts the writes to each word, by the stack. A worker measures the time of its steps, so a
// Tracer must be fast.
type count struct {
	mu     sync.Mutex
	writes map[write]int // its keys keep the words from being freed and used again
}

type write struct {
	at  unsafe.Pointer
	pcs [4]uintptr
}

func (c *count) Access(kind atomicx.Kind, at unsafe.Pointer) {
	if kind != atomicx.Load {
		c.write(at)
	}
}

func (c *count) Unchanged()           {}
func (c *count) Look(<-chan struct{}) {}
func (c *count) Lock(m *sync.Mutex)   { c.write(unsafe.Pointer(m)); m.Lock() }
func (c *count) Unlock(m *sync.Mutex) { c.write(unsafe.Pointer(m)); m.Unlock() }

func (c *count) write(at unsafe.Pointer) {
	w := write{at: at}
	runtime.Callers(3, w.pcs[:])
	c.mu.Lock()
	c.writes[w]++
	c.mu.Unlock()
}

// line returns the line of code that wrote.
func (w write) line() string {
	frames := runtime.CallersFrames(w.pcs[:])
	f, more := frames.Next()
	for more && strings.Contains(f.File, "internal/atomicx") {
		f, more = frames.Next()
	}
	_, line, _ := strings.Cut(fmt.Sprintf("%s:%d", f.File, f.Line), "/braid/")
	if line == "" {
		line = fmt.Sprintf("%s:%d", f.Function, f.Line)
	}
	return line
}

// A holder is a task that blocks its worker, except while it runs a function that it has received.
type holder struct{ run, ran chan func() }

// A crew is a pool whose workers are all held.
type crew struct {
	pool *workstealing.Pool
	all  []holder
}

func newCrew(t *testing.T, workers int) *crew {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(withQueues)) // New of a Pool reads it
	c := &crew{pool: workstealing.New(workstealing.Options{Workers: workers, GrowAfter: -1, StallAfter: -1})}
	held := make(chan holder)
	for range workers {
		require.NoError(t, c.pool.Go(func() {
			h := holder{make(chan func()), make(chan func())}
			held <- h
			for f := range h.run {
				f()
				h.ran <- f
			}
		}))
	}
	for range workers {
		c.all = append(c.all, <-held)
	}
	return c
}

// close ends the pool.
func (c *crew) close(t *testing.T) {
	for _, h := range c.all {
		close(h.run)
	}
	require.NoError(t, c.pool.Close())
}

// in runs the functions of a path on the holders from the first on, all at the same time.
func (c *crew) in(first int, fs []func()) {
	for i, f := range fs {
		c.all[first+i].run <- f
	}
	for i := range fs {
		<-c.all[first+i].ran
	}
}

const (
	times = 6100
	runs  = 3
	slack = .1 // the beginning and the end of a run write, too

	withQueues = 5 // the least number of workers and processors with which workers have queues
)

// count runs p on one set of workers after another, and returns the writes of an operation: all of them, those to shared words (see the
// package comment), and the latter for each line of code.
func (p path) count(t *testing.T) (all, shared float64, lines map[string]float64) {
	c := newCrew(t, max(runs*p.workers, withQueues))
	defer c.close(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collections come between the runs
	once := p.make(c.pool)
	counts := make([]*count, runs)
	for i := range counts {
		counts[i] = &count{writes: map[write]int{}}
		runtime.GC() // the second collection empties each sync.Pool, from which another worker would take what this one has put there
		runtime.GC()
		setup, path := once(i)
		c.in(i*p.workers, setup)
		atomicx.Trace(counts[i])
		c.in(i*p.workers, path)
		atomicx.Trace(nil)
	}
	in := map[unsafe.Pointer]map[*count]bool{} // the runs that wrote to a word
	for _, c := range counts {
		for w := range c.writes {
			if in[w.at] == nil {
				in[w.at] = map[*count]bool{}
			}
			in[w.at][c] = true
		}
	}
	const ops = runs * times
	total := 0
	words := map[[4]uintptr]map[unsafe.Pointer]int{} // how often each stack wrote to each shared word
	for _, c := range counts {
		for w, n := range c.writes {
			if total += n; len(in[w.at]) > 1 {
				if words[w.pcs] == nil {
					words[w.pcs] = map[unsafe.Pointer]int{}
				}
				words[w.pcs][w.at] += n
			}
		}
	}
	lines = map[string]float64{}
	for pcs, to := range words {
		n := inOneWord(to) / ops
		shared += n
		lines[write{pcs: pcs}.line()] += n
	}
	return float64(total) / ops, shared, lines
}

// inOneWord returns the number of writes, times the probability that two of them, taken at random, are to the same word.
func inOneWord(to map[unsafe.Pointer]int) float64 {
	sum, squares := 0, 0
	for _, n := range to {
		sum += n
		squares += n * n
	}
	return float64(squares) / float64(sum)
}

// TestSharedWrites fails if an operation writes to shared words more often than its path allows.
func TestSharedWrites(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			all, shared, lines := p.count(t)
			t.Logf("%.2f writes, %.2f of them shared, and at most %v are allowed", all, shared, p.atMost)
			if shared > p.atMost+slack {
				sorted := slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return cmp.Compare(lines[b], lines[a]) })
				for _, line := range sorted[:min(12, len(sorted))] {
					t.Logf("%6.2f %s", lines[line], line)
				}
				t.Error("too many writes to shared words")
			}
			require.Positive(t, all, "nothing is counted")
		})
	}
}
