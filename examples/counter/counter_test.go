package counter_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/examples/counter"
	"github.com/braidgo/braid/simulation"
)

// add repeats a request until the server answers.
func add(client *http.Client, id string) {
	for {
		resp, err := client.Post("http://server:80/?id="+id, "", nil)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func counts(forgets bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.02})
		c := &counter.Counter{Forgets: forgets}
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
		if total := c.Total(); total != 15 {
			return fmt.Errorf("15 were added, and the server has counted %d", total)
		}
		return nil
	}
}

func TestCounts(t *testing.T) {
	simulation.Test(t, counts(false), simulation.TestOptions{Options: simulation.Options{Guests: true}})
}

// TestFails fails. TestForgets runs it in another process.
func TestFails(t *testing.T) {
	if os.Getenv("BRAID_FAILS") != "" {
		simulation.Test(t, counts(true), simulation.TestOptions{Options: simulation.Options{Guests: true}})
	}
}

// TestForgets checks that the mistake of the counter is found, in each process by the same seed and with the same trace.
func TestForgets(t *testing.T) {
	seen := map[string]int{}
	for range 6 { // on a busy machine, another trace may come first
		c := exec.Command(os.Args[0], "-test.run=^TestFails$")
		c.Env = append(os.Environ(), "BRAID_FAILS=1", "BRAID_SEEDS=100")
		out, err := c.CombinedOutput()
		require.Error(t, err, "%s", out)
		_, trace, _ := strings.Cut(string(out), "The end of its trace:")
		trace, _, _ = strings.Cut(trace, "To repeat it")
		if !strings.Contains(string(out), "seed 7: 15 were added, and the server has counted 16") {
			trace = ""
		}
		if seen[trace]++; len(trace) > 1000 && seen[trace] == 2 {
			return
		}
	}
	t.Fatal(seen)
}
