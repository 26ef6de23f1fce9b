package simulation_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// The calls of a window are executed in the order of the guests' numbers, not in the order in which they came. The writes of a
// window to one connection are sent together.
func TestGuestOrder(t *testing.T) {
	simulation.Calm(t)
	var trace bytes.Buffer
	r := simulation.RunGuests(t, simulation.Options{Seed: 1, Trace: &trace}, func(ctx context.Context, w *simulation.World) error {
		c, _ := pipe(w)
		var turns [4]chan bool
		for i := range turns {
			turns[i] = make(chan bool)
		}
		for i := range 3 {
			w.Node("n").Start(func(ctx context.Context, h *simulation.Host) { <-turns[i+1]; w.Log("guest %d", i); close(turns[i]) })
		}
		close(turns[3]) // so that the last guest calls first
		time.Sleep(time.Second)
		_, _ = c.Write([]byte("to"))
		_, _ = c.Write([]byte("gether"))
		time.Sleep(time.Second)
		return nil
	})
	require.NoError(t, r.Err)
	require.Regexp(t, `(?s)guest 0.*guest 1.*guest 2`, trace.String())
	require.Contains(t, trace.String(), `sends 8 bytes to s: "together"`)
}

// The trace of a Dial has its beginning and its result. It has no line of the task that performs the Dial.
func TestGuestDials(t *testing.T) {
	simulation.Calm(t)
	var trace bytes.Buffer
	r := simulation.RunGuests(t, simulation.Options{Seed: 1, Trace: &trace}, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: time.Millisecond})
		_, _ = pipe(w)
		ended := make(chan bool)
		w.Node("n").Start(func(ctx context.Context, h *simulation.Host) {
			defer close(ended)
			_, _ = h.Dial(ctx, "tcp", "s:2")
			_, _ = h.Dial(ctx, "tcp", "t:1")
			w.Link("n", "s").Cut()
			_, _ = h.Dial(ctx, "tcp", "s:1")
			ctx, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			_, _ = h.Dial(ctx, "tcp", "s:1")
			_, _ = h.FS().Create("x")
		})
		<-ended
		return nil
	})
	require.NoError(t, r.Err)
	require.Regexp(t, strings.Join([]string{
		`^ +0s  main makes node s`, `0s  s\(2\) listens on port 1`, `0s  main makes node c`, `0s  c\(3\) dials s:1`, `2ms  c\(3\) is connected to s:1`,
		`2ms  main makes node n`, `2ms  n\(4\) dials s:2`, `4ms  n\(4\) is not connected: s:2: connection refused`,
		`4ms  n\(4\) is not connected: t:1: .*no such node`,
		`4ms  n\(4\) dials s:1`, `3.004s  n\(4\) is not connected: s:1: no route to host`,
		`3.004s  n\(4\) dials s:1`, `4.004s  a callback of n runs, one of 1 that could run`, `4.004s  n\(4\) is not connected: s:1: context deadline exceeded`,
		`4.004s  n\(4\): disk of n: create x \(\w+\)`, `$`,
	}, `\n +`), trace.String()+"    ")
}

// timers is a pool of the process, as in many libraries.
var timers = sync.Pool{New: func() any { t := time.NewTimer(time.Hour); t.Stop(); return t }}

// The draws of the runtime follow the seed: select, a range over a map, math/rand, and timers of equal times. A pool of the
// process holds nothing of an earlier bubble. A draw before a call does not change later draws.
func TestGuestChance(t *testing.T) {
	simulation.Calm(t)
	before := 0
	draws := func(seed uint64) string {
		var b strings.Builder
		r := simulation.RunGuests(t, simulation.Options{Seed: seed}, func(ctx context.Context, w *simulation.World) error {
			ready, table := make(chan int), map[int]int{}
			close(ready)
			for i := range 8 {
				table[i] = i
			}
			for range 50 {
				timer := timers.Get().(*time.Timer)
				timer.Reset(time.Millisecond)
				<-timer.C
				timers.Put(timer)
				for range before {
					select {
					case <-ready:
					case <-ready:
					}
				}
				w.Log("a call")
				for range 10 {
					select {
					case <-ready:
						b.WriteString("a")
					case <-ready:
						b.WriteString("b")
					}
				}
				for k := range table {
					b.WriteByte(byte('0' + k))
					break
				}
				b.WriteByte(byte('0' + rand.IntN(10)))
			}
			return nil
		})
		require.NoError(t, r.Err)
		require.Contains(t, "BCD", r.Level)
		if r.Level == "B" {
			before++
		}
		return b.String()
	}
	require.Equal(t, draws(1), draws(1))
	require.NotEqual(t, draws(1), draws(2))
}

// A connection has its own draws: traffic on other connections does not change its latencies.
func TestGuestDraws(t *testing.T) {
	times := func(others bool) (all []time.Duration) {
		r := guests(t, func(ctx context.Context, w *simulation.World) error {
			c, s := pipe(w)
			done := make(chan bool)
			w.Node("others").Start(func(ctx context.Context, h *simulation.Host) {
				defer close(done)
				l, _ := h.Listen("tcp", ":1")
				c, _ := h.Dial(ctx, "tcp", ":1")
				_, _ = l.Accept()
				for range 200 {
					time.Sleep(time.Millisecond)
					if others {
						_, _ = c.Write([]byte("x"))
					}
				}
			})
			time.Sleep(500 * time.Microsecond)
			begun := time.Now()
			for range 20 {
				_, _ = c.Write([]byte("x"))
				_, _ = s.Read(make([]byte, 1))
				all = append(all, time.Since(begun))
			}
			<-done
			return nil
		})
		require.NoError(t, r.Err)
		return all
	}
	require.Equal(t, times(false), times(true))
}

// Timers of one moment fire in an order that the seed decides, also with -race, where the runtime shuffles its queues: ten tickers of a
// second.
func TestGuestTickers(t *testing.T) {
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		for i := range 5 {
			w.Node(fmt.Sprint("n", i)).Start(func(ctx context.Context, h *simulation.Host) {
				c, err := h.ListenPacket("udp", ":1")
				if err != nil {
					w.Log("%v", err)
					return
				}
				to, _ := simulation.UDPAddr(fmt.Sprintf("n%d:1", (i+1)%5))
				for range 2 {
					go func() {
						for tick := time.Tick(time.Second); ctx.Err() == nil; {
							select {
							case <-tick:
								_, _ = c.WriteTo(fmt.Append(nil, rand.IntN(1_000_000)), to)
							case <-ctx.Done():
							}
						}
					}()
				}
			})
		}
		time.Sleep(20 * time.Second)
		return nil
	}, simulation.TestOptions{Seeds: 5, Twice: true, Options: simulation.Options{Guests: true}})
}
