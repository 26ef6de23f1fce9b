package simulation_test

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// No matter what a node sends to a node that has lost its power, the connection eventually fails.
func TestPowerOffBreaksEachConnection(t *testing.T) {
	closes := func(a net.Conn) { _ = a.(interface{ CloseWrite() error }).CloseWrite() }
	fills := func(a net.Conn) {
		_ = suspend.Here().Go(func() { _, _ = a.Write(make([]byte, 64<<10+1)) })
		_ = suspend.Sleep(context.Background(), time.Minute)
	}
	full := func(a net.Conn) {
		must(a.Write(make([]byte, 64<<10)))
		_ = suspend.Sleep(context.Background(), time.Minute)
	}
	nothing := func(net.Conn) {}
	for name, test := range map[string]struct {
		before, after, restarted func(a net.Conn)
		restarts                 bool
		want                     error
	}{
		"an end":                             {nothing, closes, nothing, false, syscall.ETIMEDOUT},
		"an end, and a restart":              {nothing, closes, nothing, true, syscall.ECONNRESET},
		"an end after a restart":             {nothing, nothing, closes, true, syscall.ECONNRESET},
		"a Write without room":               {fills, nothing, nothing, false, syscall.ETIMEDOUT},
		"a Write without room, and a reset":  {fills, nothing, nothing, true, syscall.ECONNRESET},
		"a Write without room after it":      {nothing, fills, nothing, false, syscall.ETIMEDOUT},
		"a Write of more than fits after it": {full, fills, nothing, false, syscall.ETIMEDOUT},
		"a Write without room after a reset": {nothing, nothing, fills, true, syscall.ECONNRESET},
	} {
		run(t, func(ctx context.Context, w *simulation.World) error {
			a, _ := pair(ctx, w)
			test.before(a)
			w.Node("b").PowerOff()
			test.after(a)
			if test.restarts {
				_ = suspend.Sleep(ctx, time.Minute)
				w.Node("b").Restart(func(context.Context) {})
			}
			test.restarted(a)
			require.ErrorIs(t, reads(a, time.Hour), test.want, name)
			return nil
		})
	}
}

// A Dial repeats its request, as TCP does. A repeated request must not cross a link that is held meanwhile.
func TestADialIsRepeatedOverAHold(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		b := w.Node("b")
		b.PowerOff()
		w.AfterFunc(10*time.Second+time.Second/2, func() { w.Link("a", "b").Hold("a") })
		w.AfterFunc(20*time.Second+time.Second/2, func() { b.Restart(func(context.Context) { listen(b) }) })
		_, err := w.Node("a").Dial(ctx, "tcp", "b:80")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		return nil
	})
}

// What a node has sent over a held link is lost with its power, and so are its timers.
func TestNobodyRepeatsForANodeWithoutPower(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		run(t, func(ctx context.Context, w *simulation.World) error {
			a, b := pair(ctx, w)
			w.Link("a", "b").Hold("b")
			must(b.Write([]byte("x")))
			w.Node("b").PowerOff()
			if restarts {
				w.Node("b").Restart(func(context.Context) {})
				_ = suspend.Sleep(ctx, 20*time.Minute)
			}
			_ = suspend.Sleep(ctx, time.Minute)
			w.Heal()
			_ = suspend.Sleep(ctx, time.Minute)
			require.ErrorIs(t, reads(a, time.Hour), os.ErrDeadlineExceeded)
			return nil
		})
	}
}

// A task that uses files for a long time waits for the operating system. This does not count as a native wait.
func TestFilesAreNoNativeWait(t *testing.T) {
	f := must(os.Open("/dev/urandom"))
	defer f.Close()
	require.NoError(t, simulation.Check(func(context.Context, *simulation.World) error {
		p := make([]byte, 1<<20)
		for end := time.Now().Add(120 * time.Millisecond); time.Now().Before(end); {
			must(f.Read(p))
		}
		return nil
	}, simulation.Options{Seed: 1, StallAfter: 5 * time.Millisecond}))
}
