package eventloop_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// A stream of bytes is written and read in pieces, while deadlines pass and contexts end all the time. The results of Write and
// Read account for every byte, in order.
func TestStormConservesTheStream(t *testing.T) {
	const least = 16 << 20
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	for _, where := range []string{"tasks", "goroutines"} {
		t.Run(where, func(t *testing.T) {
			var mu sync.Mutex
			outcomes := map[string]int{}
			defer func() { t.Log(outcomes) }()
			covered := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return outcomes["write cancelled"]+outcomes["read cancelled"] > 0 && outcomes["write expired"]+outcomes["read expired"] > 0
			}
			l := open(t, eventloop.Options{Loops: 2})
			a, b := pair(t, l)
			// try runs one operation under a context or a deadline that may end at any time during it.
			try := func(rnd *rand.Rand, name string, c *eventloop.Conn, deadline func(time.Time) error, op func(io.ReadWriter) (int, error)) (int, error) {
				d := time.Duration(rnd.IntN(300)) * time.Microsecond
				var rw io.ReadWriter = c
				switch rnd.IntN(3) {
				case 0:
					ctx, cancel := context.WithTimeout(context.Background(), d)
					defer cancel()
					rw = eventloop.WithContext(ctx, c)
				case 1:
					outer, end := context.WithTimeout(context.Background(), time.Hour)
					defer end()
					ctx, cancel := context.WithTimeout(context.Background(), d)
					defer cancel()
					rw = eventloop.WithContext(ctx, eventloop.WithContext(outer, c))
				default:
					must(0, deadline(time.Now().Add(d)))
					defer deadline(time.Time{})
				}
				n, err := op(rw)
				kind := name + " done"
				switch {
				case errors.Is(err, context.DeadlineExceeded):
					kind = name + " cancelled"
				case errors.Is(err, os.ErrDeadlineExceeded):
					kind = name + " expired"
				case err != nil && err != io.EOF:
					t.Error(err)
				}
				mu.Lock()
				outcomes[kind]++
				mu.Unlock()
				return n, err
			}
			at := func(pos int) byte { return byte(pos ^ pos>>8 ^ pos>>16) }
			var both sync.WaitGroup
			var total atomic.Int64 // the number of written bytes
			start := func(f func()) {
				both.Add(1)
				g := func() { defer both.Done(); f() }
				if where == "tasks" {
					must(0, l.Go(g))
				} else {
					go g()
				}
			}
			start(func() {
				rnd := rand.New(rand.NewPCG(seed, 1))
				buf := make([]byte, 1<<20)
				pos := 0
				for pos < least || !covered() {
					p := buf[:1+rnd.IntN(len(buf))]
					for i := range p {
						p[i] = at(pos + i)
					}
					n, _ := try(rnd, "write", a, a.SetWriteDeadline, func(w io.ReadWriter) (int, error) { return w.Write(p) })
					pos += n
				}
				total.Store(int64(pos))
				must(0, a.CloseWrite())
			})
			start(func() {
				rnd := rand.New(rand.NewPCG(seed, 2))
				buf := make([]byte, 1<<17)
				for pos := 0; ; {
					if rnd.IntN(8) == 0 { // makes the reader slow, so that writes have to wait
						must(0, suspend.Sleep(context.Background(), time.Millisecond))
					}
					n, err := try(rnd, "read", b, b.SetReadDeadline, func(r io.ReadWriter) (int, error) { return r.Read(buf) })
					for i, c := range buf[:n] {
						if c != at(pos+i) {
							t.Errorf("wrong byte at %d", pos+i)
							return
						}
					}
					pos += n
					if err == io.EOF {
						if int64(pos) != total.Load() {
							t.Errorf("%d of %d bytes", pos, total.Load())
						}
						return
					}
				}
			})
			within(t, both.Wait)
		})
	}
}
