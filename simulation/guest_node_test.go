package simulation_test

import (
	"context"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// With the overlay, each goroutine that descends from a guest belongs to the guest, even a function of time.AfterFunc, and a goroutine whose
// labels the program has replaced.
func TestGuestHere(t *testing.T) {
	simulation.Calm(t)
	for range 2 { // the second World has other ids
		r := simulation.RunGuests(t, simulation.Options{Seed: 1}, func(_ context.Context, w *simulation.World) error {
			see := func(name string, boot int, guest bool) {
				gotName, gotBoot, got := simulation.HostHere()
				if overlaid := simulation.Nodes(); !overlaid {
					name, boot, guest = "", 0, false
				}
				if gotName != name || gotBoot != boot || got != guest {
					t.Errorf("%q %d %v instead of %q %d %v", gotName, gotBoot, got, name, boot, guest)
				}
			}
			see("", 0, true)
			_ = w.Go(func() { see("", 0, false) })
			var all sync.WaitGroup
			for boot := range 2 {
				all.Add(3)
				w.Node("a").Start(func(context.Context, *simulation.Host) {
					defer all.Done()
					see("a", boot, true)
					time.AfterFunc(time.Second, func() { defer all.Done(); see("a", boot, true) })
					pprof.SetGoroutineLabels(context.Background())
					go func() { defer all.Done(); see("a", boot, true) }()
				})
				all.Wait()
				w.Node("a").Crash()
			}
			return nil
		})
		require.NoError(t, r.Err)
	}
	name, boot, guest := simulation.HostHere()
	require.Zero(t, name)
	require.Zero(t, boot)
	require.False(t, guest)
}

// With the overlay, a crash stops the goroutines of the node: none runs again, and no deferred function runs. Without it, they learn of the
// crash from their context.
func TestGuestCrashStops(t *testing.T) {
	if child, _ := apart(t, false); !child { // without the overlay, the crashed guests remain
		return
	}
	var counts sync.Map // the goroutines of a dead node do not synchronize with the others
	ran := func(name string) *atomic.Int32 {
		n, _ := counts.LoadOrStore(name, new(atomic.Int32))
		return n.(*atomic.Int32)
	}
	r := guests(t, func(_ context.Context, w *simulation.World) error {
		n := w.Node("a")
		n.Start(func(ctx context.Context, h *simulation.Host) {
			defer func() { ran("a deferred function").Add(1) }()
			context.AfterFunc(ctx, func() { ran("context.AfterFunc").Add(1) })
			time.AfterFunc(time.Minute, func() { ran("time.AfterFunc").Add(1) })
			go func() {
				for range time.Tick(time.Second) {
					ran("a Ticker").Add(1)
				}
			}()
			go func() {
				time.Sleep(time.Minute)
				ran("Sleep").Add(1)
			}()
			go func() {
				_ = h.FS().Sync()
				f, _ := h.FS().Create("x")
				time.Sleep(time.Minute)
				_ = f.Close()
				ran("a closed file").Add(1)
			}()
			go func() {
				l, _ := h.Listen("tcp", ":1")
				_, _ = l.Accept()
				ran("Accept").Add(1)
			}()
			<-ctx.Done()
		})
		time.Sleep(10*time.Second + time.Millisecond)
		n.Crash()
		before := ran("a Ticker").Load()
		time.Sleep(time.Hour)
		if ran("a Ticker").Load() > before {
			ran("a Ticker, after the crash").Add(1)
		}
		again := make(chan bool)
		n.Start(func(context.Context, *simulation.Host) { time.Sleep(time.Second); close(again) })
		<-again
		return nil
	})
	require.NoError(t, r.Err)
	require.Zero(t, r.Ahead)
	counts.Delete("a Ticker")
	got, want := map[string]int32{}, map[string]int32{}
	counts.Range(func(name, n any) bool { got[name.(string)] = n.(*atomic.Int32).Load(); return true })
	if !simulation.Nodes() {
		want = map[string]int32{"a deferred function": 1, "context.AfterFunc": 1, "time.AfterFunc": 1, "a Ticker, after the crash": 1, "Sleep": 1, "a closed file": 1, "Accept": 1}
	}
	require.Equal(t, want, got)
}

// A node that crashes itself does not return from Crash. Its guests do not count: the rest of the World is in a deadlock.
func TestGuestCrashItself(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	returned := false
	r := guests(t, func(_ context.Context, w *simulation.World) error {
		never := make(chan bool)
		w.Node("a").Start(func(context.Context, *simulation.Host) {
			go func() {
				for range time.Tick(time.Second) {
				}
			}()
			time.Sleep(time.Minute)
			w.Node("a").Crash()
			returned = true
		})
		<-never
		return nil
	})
	require.ErrorIs(t, r.Err, simulation.ErrDeadlock)
	require.Equal(t, !simulation.Nodes(), returned)
	require.ErrorContains(t, r.Err, "guests of the World:")
	require.Equal(t, !simulation.Nodes(), strings.Contains(r.Err.Error(), "guests of a:"), r.Err)
}

// A lock of the process that a crashed node holds is reported when another node waits for it.
func TestGuestOrphanedLock(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	for _, early := range []bool{false, true} {
		r := guests(t, func(_ context.Context, w *simulation.World) error {
			var shared sync.RWMutex
			w.Node("a").Start(func(ctx context.Context, h *simulation.Host) {
				shared.Lock()
				defer shared.Unlock()
				<-ctx.Done()
			})
			time.Sleep(time.Second)
			reads := make(chan bool)
			read := func() {
				w.Node("b").Start(func(context.Context, *simulation.Host) {
					shared.RLock()
					defer shared.RUnlock()
					close(reads)
				})
				time.Sleep(time.Second)
			}
			if early && simulation.Nodes() { // without the overlay, the wait stops the clock
				read()
			}
			w.Node("a").Crash()
			if !early || !simulation.Nodes() {
				read()
			}
			<-reads
			return nil
		})
		if !simulation.Nodes() {
			require.NoError(t, r.Err)
			continue
		}
		require.ErrorIs(t, r.Err, simulation.ErrStuck)
		require.ErrorContains(t, r.Err, "a mutex that a guest of a crashed node has locked")
		require.ErrorContains(t, r.Err, "sync.(*RWMutex).RLock")
		require.ErrorContains(t, r.Err, "guest_node_test.go")
	}
}
