package nemesis_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

var kinds = map[string]nemesis.Kind{
	"partition": nemesis.Partition, "one way": nemesis.OneWay, "cut": nemesis.Cut, "crash": nemesis.Crash,
	"power": nemesis.PowerOff, "pause": nemesis.Pause, "skew": nemesis.Skew, "disk": nemesis.SlowDisk,
	"full": nemesis.FullDisk, "rot": nemesis.RotDisk,
}

var names = []string{"a", "b", "c"}

// A ward has three nodes, and records their symptoms.
type ward struct {
	w     *simulation.World
	ticks map[string]int
	down  map[string]time.Time
	seen  map[string]bool
}

// boot makes the node tick and reply.
func (x *ward) boot(n *simulation.Node) {
	n.Restart(func(ctx context.Context) {
		ln, err := n.Listen("tcp", ":1")
		if err != nil {
			panic(err)
		}
		_ = n.Go(func() {
			for {
				x.ticks[n.Name()]++
				_ = suspend.Sleep(ctx, time.Second)
			}
		})
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = n.Go(func() { _, _ = c.Read(make([]byte, 1)); _ = c.Close() })
		}
	})
}

// observe adds the symptoms of the next five seconds to seen.
func (x *ward) observe(ctx context.Context) {
	begin, before, seen := x.w.Now(), maps.Clone(x.ticks), x.seen
	wasDown := func(n *simulation.Node) bool { return !x.down[n.Name()].Before(begin) }
	for _, a := range names {
		n := x.w.Node(a)
		if !n.Now().Equal(begin) {
			seen["skew"] = true
		}
		_ = x.w.Go(func() {
			f, err := n.FS().Create("f")
			if errors.Is(err, syscall.ENOSPC) {
				seen["full"] = true
			}
			if err != nil {
				return
			}
			zeros, got := make([]byte, 8<<10), make([]byte, 8<<10)
			_, _ = f.WriteAt(zeros, 0)
			if f.Sync() == nil && x.w.Now().After(begin) {
				seen["disk"] = true
			}
			if _, err := f.ReadAt(got, 0); err == nil && !bytes.Equal(got, zeros) {
				seen["rot"] = true
			}
		})
		for _, b := range names {
			_ = x.w.Go(func() {
				ctx, end := context.WithCancel(ctx)
				defer x.w.AfterFunc(4*time.Second, end)()
				c, err := n.Dial(ctx, "tcp", b+":1")
				switch {
				case err == nil:
					_ = c.Close()
				case wasDown(n):
				case errors.Is(err, syscall.ECONNREFUSED):
					seen["crash"] = true
				case errors.Is(err, syscall.EHOSTUNREACH):
					seen["cut"] = true
				case errors.Is(err, context.Canceled) && wasDown(x.w.Node(b)):
					seen["power"] = true
				case errors.Is(err, context.Canceled):
					seen["partition"] = true
				}
			})
		}
	}
	_ = suspend.Sleep(ctx, 5*time.Second)
	for _, name := range names {
		if x.ticks[name] == before[name] && !wasDown(x.w.Node(name)) {
			seen["pause"] = true
		}
	}
}

// ill returns the symptoms under faults of a kind, and whether a later look found no symptoms. At the end there must be none.
func ill(t *testing.T, seed uint64, o nemesis.Options) (all map[string]bool, heals bool) {
	var x *ward
	all = map[string]bool{}
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		x = &ward{w, map[string]int{}, map[string]time.Time{}, map[string]bool{}}
		w.Always(func() error {
			for _, name := range names {
				if w.Node(name).Crashed() {
					x.down[name] = w.Now()
				}
			}
			return nil
		})
		for _, name := range names {
			x.boot(w.Node(name))
		}
		x.observe(ctx)
		require.Empty(t, x.seen)
		o.Nodes, o.Boot, o.Every = names, x.boot, 2*time.Second
		calm := nemesis.Start(w, o)
		for range 20 {
			x.seen = map[string]bool{}
			x.observe(ctx)
			heals = heals || len(x.seen) == 0 && len(all) > 0
			maps.Copy(all, x.seen)
		}
		calm()
		calm()
		x.seen = map[string]bool{}
		for range 10 {
			x.observe(ctx)
		}
		require.Empty(t, x.seen, "seed %d: after the end", seed)
		return nil
	}, simulation.Options{Seed: seed})
	require.NoError(t, r.Err)
	return all, heals
}

// Each kind of fault has its own symptoms and no others, and there are none after the end of the faults.
func TestEachKind(t *testing.T) {
	for name, kind := range kinds {
		seen, heals := map[string]bool{}, false
		for seed := range uint64(20) {
			s, h := ill(t, seed+1, nemesis.Options{Kinds: kind})
			heals = heals || h
			maps.Copy(seen, s)
		}
		require.True(t, heals, name)
		want := name
		if kind == nemesis.OneWay {
			want = "partition"
		}
		require.Equal(t, map[string]bool{want: true}, seen, name)
	}
}

// Each seed leaves out some kinds, and no kind occurs in all seeds. A full or a rotting disk occurs only where it was requested.
func TestSwarm(t *testing.T) {
	const seeds = 60
	count, sets := map[string]int{}, map[string]bool{}
	for seed := range uint64(seeds) {
		all, _ := ill(t, seed+1, nemesis.Options{})
		seen := slices.Sorted(maps.Keys(all))
		sets[strings.Join(seen, " ")] = true
		for _, name := range seen {
			count[name]++
		}
	}
	require.Len(t, count, 7, "%v", count)
	require.Zero(t, count["full"]+count["rot"])
	for name, n := range count {
		require.Greater(t, n, seeds/10, name)
		require.Less(t, n, seeds*2/3, name)
	}
	require.Greater(t, len(sets), seeds/4)
}

// A node that has crashed by itself is booted again, during the faults and at their end.
func TestACrashOfItsOwn(t *testing.T) {
	for _, during := range []bool{true, false} {
		boots := 0
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			calm := nemesis.Start(w, nemesis.Options{Nodes: names, Kinds: nemesis.SlowDisk, Boot: func(n *simulation.Node) {
				boots++
				n.Restart(func(context.Context) {})
			}})
			w.Node("b").Crash()
			if during {
				_ = suspend.Sleep(ctx, time.Minute)
				require.Equal(t, 1, boots)
			}
			calm()
			require.Equal(t, 1, boots)
			_ = suspend.Sleep(ctx, time.Minute)
			require.Equal(t, 1, boots)
			require.False(t, w.Node("b").Crashed())
			return nil
		}, simulation.Options{Seed: 1})
		require.NoError(t, r.Err)
	}
}

// Clients have only faults of their links, and without a Boot no node crashes.
func TestClients(t *testing.T) {
	all := new(bytes.Buffer)
	for seed := range uint64(40) {
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			calm := nemesis.Start(w, nemesis.Options{Nodes: []string{"server"}, Clients: []string{"client"}, Every: 100 * time.Millisecond})
			w.Always(func() error {
				if w.Node("client").Crashed() || w.Node("server").Crashed() || !w.Node("client").Now().Equal(w.Now()) {
					return errors.New("more than the link is affected")
				}
				return nil
			})
			_ = suspend.Sleep(ctx, 10*time.Second)
			calm()
			return nil
		}, simulation.Options{Seed: seed + 1, Trace: all})
		require.NoError(t, r.Err)
	}
	require.Contains(t, all.String(), "do not reach each other")
	require.NotContains(t, all.String(), "client is paused")
}

func TestMisuse(t *testing.T) {
	r := simulation.Run(func(_ context.Context, w *simulation.World) error {
		require.PanicsWithValue(t, "nemesis: no Nodes", func() { nemesis.Start(w, nemesis.Options{}) })
		require.PanicsWithValue(t, "nemesis: unknown Kind", func() {
			nemesis.Start(w, nemesis.Options{Nodes: names, Kinds: nemesis.Pause | nemesis.RotDisk<<1})
		})
		require.PanicsWithValue(t, "nemesis: none of the Kinds is possible", func() {
			nemesis.Start(w, nemesis.Options{Nodes: names, Kinds: nemesis.Crash})
		})
		return nil
	}, simulation.Options{Seed: 1})
	require.NoError(t, r.Err)
}

// Faults also affect guests, and a seed has the same faults twice: a stock server and a stock client.
func TestGuests(t *testing.T) {
	var served atomic.Int32
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		boot := func(n *simulation.Node) {
			n.Start(func(_ context.Context, h *simulation.Host) {
				if ln, err := h.Listen("tcp", ":80"); err == nil {
					_ = http.Serve(ln, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
				}
			})
		}
		boot(w.Node("server"))
		calm := nemesis.Start(w, nemesis.Options{Nodes: []string{"server"}, Clients: []string{"client"}, Boot: boot})
		done := make(chan error)
		w.Node("client").Start(func(_ context.Context, h *simulation.Host) {
			client, failed := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DialContext: h.Dial}}, 0
			for range 100 {
				if res, err := client.Get("http://server/"); err == nil {
					_ = res.Body.Close()
				} else {
					failed++
				}
				time.Sleep(50 * time.Millisecond)
			}
			w.Sometimes("requests fail", failed > 0)
			calm()
			time.Sleep(10 * time.Second)
			client.CloseIdleConnections()
			_, err := client.Get("http://server/")
			done <- err
		})
		return <-done
	}, simulation.TestOptions{Seeds: 10, Twice: true, InProcess: true, Options: simulation.Options{Guests: true}})
	require.Positive(t, served.Load())
}

// Faults that have no effect on guests are not chosen for a World of guests, unless they were requested.
func TestKindsForGuests(t *testing.T) {
	paused := func(kinds nemesis.Kind) bool {
		var trace strings.Builder
		o := simulation.TestOptions{Seeds: 20, InProcess: true, Options: simulation.Options{Guests: true, Trace: &trace}}
		simulation.Test(t, func(_ context.Context, w *simulation.World) error {
			for _, name := range []string{"a", "b"} {
				w.Node(name).Start(func(context.Context, *simulation.Host) {})
			}
			calm := nemesis.Start(w, nemesis.Options{Nodes: []string{"a", "b"}, Kinds: kinds})
			time.Sleep(5 * time.Second)
			calm()
			return nil
		}, o)
		return strings.Contains(trace.String(), "a is paused") || strings.Contains(trace.String(), "clock of a")
	}
	require.False(t, paused(0))
	require.True(t, paused(nemesis.Pause))
}

// After a fork, the faults differ.
func TestAFork(t *testing.T) {
	crashes := func(seed string) (all []string) {
		t.Setenv("BRAID_SEED", seed)
		simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
			all = nil // because a seed may run twice
			nemesis.Start(w, nemesis.Options{Nodes: names, Kinds: nemesis.Crash, Boot: func(n *simulation.Node) {
				all = append(all, n.Name()+" "+w.Now().String())
				n.Restart(func(context.Context) {})
			}})
			return suspend.Sleep(ctx, 10*time.Second)
		}, simulation.TestOptions{})
		return all
	}
	first, other := crashes("3"), crashes("3-30:7")
	require.Equal(t, first[:2], other[:2])
	require.NotEqual(t, first[6:12], other[6:12])
}

// Guests repeat packets that a nemesis, or chance, has dropped. A second run is the same.
func TestGuestsOverUDP(t *testing.T) {
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MaxLatency: time.Millisecond, Loss: 0.3, Double: 0.3})
		clients := []string{"x", "y"}
		nemesis.Start(w, nemesis.Options{Nodes: []string{"server"}, Clients: clients, Kinds: nemesis.Partition | nemesis.OneWay | nemesis.Cut})
		w.Node("server").Start(func(_ context.Context, h *simulation.Host) {
			c, err := h.ListenPacket("udp", ":53")
			for p := make([]byte, 8); err == nil; {
				var n int
				var from net.Addr
				if n, from, err = c.ReadFrom(p); err == nil {
					_, err = c.WriteTo(p[:n], from)
				}
			}
		})
		done := make(chan error)
		for _, name := range clients {
			w.Node(name).Start(func(_ context.Context, h *simulation.Host) {
				c, err := h.ListenPacket("udp", ":0")
				to, _ := simulation.UDPAddr("server:53")
				for k, p := 0, make([]byte, 8); k < 20 && err == nil; {
					_, err = c.WriteTo(append([]byte(name), byte('a'+k)), to)
					_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
					if n, _, late := c.ReadFrom(p); late == nil && string(p[:n]) == name+string(rune('a'+k)) {
						k++
					}
				}
				w.Log("%s has all", name)
				done <- err
			})
		}
		return errors.Join(<-done, <-done)
	}, simulation.TestOptions{Seeds: 5, Twice: true, InProcess: true, Options: simulation.Options{Guests: true}})
}
