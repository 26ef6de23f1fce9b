package simulation_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/simulation"
)

// These are the promises about guests, with their tests. Most of them have a mutant in internal/testrig/mutants, and the last ones in
// simulation/internal/chance.
//
//	who a guest is, and its node                           TestGuestOrder, TestGuestPanics
//	calls of a window are taken in by guest, also Log      TestGuestOrder
//	writes of a window are one stretch of bytes            TestGuestOrder
//	draws of a connection are its own                      TestGuestDraws
//	a call ends the sleep; package time                    TestGuestConn, TestGuestCancelsATask
//	select, ranges over maps, math/rand, timers            TestGuestChance
//	crypto/rand                                            TestGuestRandom
//	a mutex over a Read, a Write, a Sync                   TestGuestHoldsAMutexOverARead, TestGuestWaitsForAMutexInParts, TestGuestDisk
//	a mutex over a Sleep; real I/O                         TestGuestHoldsAMutexOverASleep, TestGuestOutside
//	ErrDeadlock, ErrBusy                                   TestGuestEnds, TestGuestMessages
//	a crash, a dead Host, its network and its disk         TestGuestCrash, TestGuestDisk, TestGuestRuns
//	the end of a run                                       TestGuestsLeft
//	a panic names its guest                                TestGuestPanics
//	a difference in a run with a Long window               TestALongWindow
//	the outcome of a Dial in the trace                     TestGuestDials
//
// Traps:
//
//	no preemptoff, by which a recovered panic is fatal     TestGuestRuns: a guest recovers a panic
//	an error of a dead disk makes programs panic           TestGuestDisk
//	a sync.Pool keeps timers of an older bubble            TestGuestChance
//	net.DefaultResolver is real                            TestGuestRuns: a name is looked up
//	other goroutines count as runnable                     TestGuestBeside
//	calls of the system before the run                     TestGuestBesideACall
//	Gosched in a Long window                               TestALongWindow, TestGuestWaitsForAMutexInParts
//	a guest may not wait for the lock of the driver        TestGuestRuns: a String in a Log locks
//	the same while garbage is collected, at level C        TestGuestRuns: garbage between two collections
//	a Sync that takes no time hides the mutex              TestGuestDisk
//	guests that are left keep the memory of their run      TestGuestsLeft
//	draws are verified before they are trusted             TestOpenRefuses, TestSeed, TestSeedCheap of simulation/internal/chance

var far = simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.01}

// posts runs net/http unchanged: a server, and clients with pools, timeouts and retries. Each client posts the given number of
// requests.
func posts(clients, requests int) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(far)
		var mu sync.Mutex
		seen := map[string]int{}
		srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			seen[string(body)]++
			n := len(seen)
			mu.Unlock()
			time.Sleep(time.Duration(len(body)) * time.Millisecond)
			fmt.Fprintf(rw, "%s is %d", body, n)
		}), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 20 * time.Second}
		w.Node("server").Start(func(ctx context.Context, h *simulation.Host) {
			ln, err := h.Listen("tcp", ":80")
			if err == nil {
				err = srv.Serve(ln)
			}
			w.Log("%v", err)
		})
		errs := make(chan error, clients)
		for i := range clients {
			w.Node("clients").Start(func(ctx context.Context, h *simulation.Host) { errs <- post(h, i, requests) })
		}
		var all error
		for range clients {
			all = errors.Join(all, <-errs)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != clients*requests {
			all = errors.Join(all, fmt.Errorf("%d seen", len(seen)))
		}
		_ = srv.Close()
		return all
	}
}

func post(h *simulation.Host, i, requests int) error {
	tr := &http.Transport{DialContext: h.Dial, MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Second}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, Timeout: 150 * time.Millisecond}
	for k := range requests {
		body := fmt.Sprintf("c%d-%d", i, k)
		for try, done := 0, false; !done; try++ {
			if try > 100 {
				return fmt.Errorf("%s: too many tries", body)
			}
			resp, err := client.Post("http://server:80/", "text/plain", strings.NewReader(body))
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if done = err == nil && resp.StatusCode == 200; done && !strings.HasPrefix(string(got), body) {
				return fmt.Errorf("%s: %s", body, got)
			}
		}
	}
	return nil
}

// fromEnv returns the number of seeds to run.
func fromEnv(n int) int {
	if v, err := strconv.Atoi(os.Getenv("BRAID_GUESTS")); err == nil {
		return v
	}
	return n
}

// repeats runs each seed twice, and reports for how many seeds both runs were equal.
func repeats(t *testing.T, seeds int, main func(ctx context.Context, w *simulation.World) error) {
	simulation.Calm(t)
	same, windows, steps, long, level := 0, 0, 0, 0, ""
	for seed := range uint64(seeds) {
		var rs [2]simulation.Report
		for try := range 5 {
			for i := range rs {
				cryptotest.SetGlobalRandom(t, seed+1)
				rs[i] = simulation.RunGuests(t, simulation.Options{Seed: seed + 1, MaxTime: 24 * time.Hour}, main)
				require.NoError(t, rs[i].Err)
			}
			long += rs[0].Long + rs[1].Long
			if rs[0].Hash == rs[1].Hash || rs[0].Long+rs[1].Long == 0 { // otherwise the machine may have decided an order
				break
			}
			t.Logf("seed %d, try %d: %v", seed+1, try, rs)
		}
		windows += rs[0].Windows + rs[1].Windows
		steps += rs[0].Steps + rs[1].Steps
		level = rs[0].Level
		if rs[0].Hash == rs[1].Hash {
			same++
		} else {
			t.Log(seed+1, rs)
		}
	}
	t.Logf("%d of %d seeds repeat, level %s; %d steps and %d windows a run, %d long", same, seeds, level, steps/2/seeds, windows/2/seeds, long)
	require.Equal(t, seeds, same)
}

// crypto/rand depends on the seed.
func TestGuestRandom(t *testing.T) {
	var texts []string
	simulation.Test(t, func(context.Context, *simulation.World) error {
		texts = append(texts, rand.Text())
		return nil
	}, simulation.TestOptions{Seeds: 2, Twice: true, InProcess: true, Options: simulation.Options{Guests: true}})
	require.Len(t, texts, 4)
	require.Equal(t, []bool{true, false, true}, []bool{texts[0] == texts[1], texts[1] == texts[2], texts[2] == texts[3]})
}

// A window without work: two nodes send a byte back and forth. BRAID_GUESTS is the number of round trips.
func TestGuestWindow(t *testing.T) {
	simulation.Calm(t)
	n := fromEnv(1000)
	begun := processor.Used()
	r := simulation.RunGuests(t, simulation.Options{Seed: 1, MaxSteps: 1 << 30}, func(_ context.Context, w *simulation.World) error {
		c, s := pipe(w)
		go func() { _, _ = io.Copy(s, s) }()
		p := make([]byte, 1)
		for range n {
			_, _ = c.Write(p)
			_, _ = io.ReadFull(c, p)
		}
		return nil
	})
	require.NoError(t, r.Err)
	require.GreaterOrEqual(t, r.Windows, 2*n)
	t.Logf("%d windows, %v of processor each", r.Windows, (processor.Used()-begun)/time.Duration(r.Windows))
}

// TestGuestBeside fails, because the driver cannot distinguish other goroutines of the bubble from guests.
func TestGuestBeside(t *testing.T) {
	child, out := apart(t, true)
	if !child {
		require.Contains(t, out, "t.Setenv")
		return
	}
	t.Parallel()
	guests(t, func(context.Context, *simulation.World) error { return nil })
}

func TestPosts(t *testing.T) { repeats(t, fromEnv(10), posts(20, 10)) }
