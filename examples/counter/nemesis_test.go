package counter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/examples/counter"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
)

// serve is the main function of the service: a counter on the disk of its node. It runs at each boot.
func serve(h *simulation.Host, unsynced bool) error {
	f, err := h.FS().Open("ids")
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = h.FS().Create("ids"); err == nil {
			err = h.FS().Sync() // makes the name durable
		}
	}
	if err != nil {
		return err
	}
	c, err := counter.Open(f)
	if err != nil {
		return err
	}
	c.Unsynced = unsynced
	ln, err := h.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	return http.Serve(ln, c)
}

// survives checks that no id is lost, and none is counted twice, while the server crashes and the network is partitioned.
func survives(unsynced bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, MaxSync: 5 * time.Millisecond})
		boot := func(n *simulation.Node) {
			n.Start(func(ctx context.Context, h *simulation.Host) { w.Log("the server ends: %v", serve(h, unsynced)) })
		}
		boot(w.Node("server"))
		clients := []string{"client0", "client1", "client2"}
		calm := nemesis.Start(w, nemesis.Options{
			Nodes: []string{"server"}, Clients: clients, Boot: boot, Every: time.Second,
			Kinds: nemesis.Partition | nemesis.OneWay | nemesis.Cut | nemesis.Crash | nemesis.PowerOff,
		})
		var all sync.WaitGroup
		for _, name := range clients {
			all.Add(1)
			w.Node(name).Start(func(ctx context.Context, h *simulation.Host) {
				defer all.Done()
				client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DialContext: h.Dial}}
				for k := range 20 {
					add(client, fmt.Sprint(name, "-", k))
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		calm() // ends the faults
		answer := make(chan string)
		w.Node("client0").Start(func(ctx context.Context, h *simulation.Host) { answer <- total(h) })
		if total := <-answer; total != "60" {
			return fmt.Errorf("60 were added, and the server has counted %s", total)
		}
		return nil
	}
}

func total(h *simulation.Host) string {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: h.Dial}}
	for {
		resp, err := client.Get("http://server/")
		if err == nil {
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				return string(text)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestSurvives(t *testing.T) {
	simulation.Test(t, survives(false), simulation.TestOptions{Seeds: 30, Options: simulation.Options{Guests: true}})
}

// TestLoses fails. TestUnsynced runs it in another process.
func TestLoses(t *testing.T) {
	if os.Getenv("BRAID_FAILS") != "" {
		simulation.Test(t, survives(true), simulation.TestOptions{Options: simulation.Options{Guests: true}})
	}
}

// TestUnsynced checks that the counter that answers before the id is durable loses one in a crash.
func TestUnsynced(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^TestLoses$")
	c.Env = append(os.Environ(), "BRAID_FAILS=1", "BRAID_SEEDS=100")
	out, err := c.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Regexp(t, `seed \d+: 60 were added, and the server has counted \d+\n`, string(out))
}
