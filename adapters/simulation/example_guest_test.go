package simulation_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/simulation"
)

// A counter counts requests, each id once.
type counter struct {
	forgets bool // the mistake
	mu      sync.Mutex
	seen    map[string]bool
	total   int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := r.URL.Query().Get("id"); c.forgets || !c.seen[id] {
		c.seen[id] = true
		c.total++
	}
}

// add repeats a request until it is answered.
func add(client *http.Client, id string) {
	for {
		resp, err := client.Post("http://server:80/?id="+id, "", nil)
		if err == nil {
			_ = resp.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func counts(forgets bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.02})
		c := &counter{forgets: forgets, seen: map[string]bool{}}
		w.Node("server").Start(func(ctx context.Context, h *simulation.Host) {
			ln, err := h.Listen("tcp", ":80")
			if err == nil {
				err = http.Serve(ln, c)
			}
			w.Log("the server ends: %v", err)
		})
		var all sync.WaitGroup
		for i := range 3 {
			all.Add(1)
			w.Node(fmt.Sprint("client", i)).Start(func(ctx context.Context, h *simulation.Host) {
				defer all.Done()
				client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DialContext: h.Dial}}
				for k := range 5 {
					add(client, fmt.Sprint(i, "-", k))
				}
			})
		}
		all.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.total != 15 {
			return fmt.Errorf("15 were added, and the server has counted %d", c.total)
		}
		return nil
	}
}

func TestCounts(t *testing.T) {
	simulation.Test(t, simulation.TestOptions{Options: simulation.Options{Guests: true}}, counts(false))
}

// The counter that forgets is found, and each seed that finds it says the same again.
func TestForgets(t *testing.T) {
	simulation.Calm(t)
	found := 0
	for seed := range uint64(20) {
		o := simulation.Options{Seed: seed + 1}
		first, second := simulation.RunGuests(t, o, counts(true)), simulation.RunGuests(t, o, counts(true))
		require.Equal(t, first.Hash, second.Hash)
		require.Equal(t, first.Err, second.Err)
		if first.Err != nil {
			require.ErrorContains(t, first.Err, "15 were added")
			found++
		}
	}
	require.Greater(t, found, 2)
	t.Logf("%d of 20 seeds find it", found)
}
