package simulation_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// reads returns the error of a Read of one byte, with the timeout d.
func reads(c net.Conn, d time.Duration) error {
	_ = c.SetReadDeadline(suspend.Now().Add(d))
	_, err := c.Read(make([]byte, 1))
	return err
}

// One direction is held, and the other is not.
func TestHoldOneDirection(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		listen(w.Node("b"))
		a, b := pair(ctx, w)
		require.PanicsWithValue(t, "simulation: Hold with a node that is not an end of the Link", func() { w.Link("a", "b").Hold("c") })
		for _, from := range []string{"a", "b"} {
			out, in := a, b
			if from == "b" {
				out, in = b, a
			}
			w.Link("a", "b").Hold(from)
			must(out.Write([]byte("x")))
			must(in.Write([]byte("y")))
			require.ErrorIs(t, reads(in, time.Minute), os.ErrDeadlineExceeded)
			require.NoError(t, reads(out, time.Second))
			_, err := w.Node("a").Dial(ctx, "tcp", "b:80")
			require.ErrorIs(t, err, syscall.ETIMEDOUT, "of the request, or of the answer")
			w.Heal()
			require.NoError(t, reads(in, time.Second))
		}
		w.Link("a", "b").Hold("a")
		must(a.Write([]byte("x")))
		must(b.Write([]byte("y")))
		require.NoError(t, reads(a, time.Second))
		require.ErrorIs(t, reads(a, time.Hour), syscall.ETIMEDOUT)
	})
}

// With a tail of a quarter, three quarters of the segments have the normal latency, and some need eight times as long.
func TestTail(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := pair(ctx, w)
		w.SetFaults(simulation.Faults{MinLatency: time.Second, MaxLatency: time.Second, Tail: 0.25})
		took := map[time.Duration]int{}
		for range 400 {
			begin := suspend.Now()
			must(a.Write([]byte("x")))
			require.NoError(t, reads(b, 24*time.Hour))
			took[suspend.Now().Sub(begin)]++
		}
		require.InDelta(t, 300, took[time.Second], 50)
		require.InDelta(t, 75, took[2*time.Second], 40)
		require.Positive(t, took[8*time.Second])
		return nil
	})
}

// The peers of a node that loses its power are not notified.
func TestPowerOff(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		b := w.Node("b")
		listen(b)
		silent, _ := pair(ctx, w)
		writes, _ := pair(ctx, w)
		b.PowerOff()
		b.PowerOff()
		require.True(t, b.Crashed())
		require.ErrorIs(t, reads(silent, time.Hour), os.ErrDeadlineExceeded)
		must(writes.Write([]byte("x")))
		_ = suspend.Sleep(ctx, 5*time.Minute)
		must(writes.Write([]byte("x")))
		require.ErrorIs(t, reads(writes, 9*time.Minute), os.ErrDeadlineExceeded)
		require.ErrorIs(t, reads(writes, 2*time.Minute), syscall.ETIMEDOUT)

		begin := suspend.Now()
		_, err := w.Node("a").Dial(ctx, "tcp", "b:80")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.Equal(t, 127*time.Second, suspend.Now().Sub(begin))
		w.AfterFunc(time.Minute+time.Second/2, func() { b.Restart(func(context.Context) { listen(b) }) })
		c, err := w.Node("a").Dial(ctx, "tcp", "b:80")
		require.NoError(t, err)
		must(silent.Write([]byte("x")))
		require.ErrorIs(t, reads(silent, time.Second), syscall.ECONNRESET)

		b.PowerOff()
		must(c.Write([]byte("x")))
		require.ErrorIs(t, reads(c, time.Minute), os.ErrDeadlineExceeded)
		b.Restart(func(context.Context) {})
		require.ErrorIs(t, reads(c, time.Second), syscall.ECONNRESET)
		b.Crash()
		b.PowerOff() // has already crashed
		_, err = w.Node("a").Dial(ctx, "tcp", "b:80")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

func TestSlowAndFullDisks(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, other := w.Node("n"), w.Node("other")
		f, g := must(n.FS().Create("f")), must(other.FS().Create("g"))
		syncs := func(f disk.File) time.Duration {
			begin := w.Now()
			require.NoError(t, f.Sync())
			return w.Now().Sub(begin)
		}
		n.SlowDisk(time.Second)
		longest := time.Duration(0)
		for range 20 {
			longest = max(longest, syncs(f))
			require.Zero(t, syncs(g))
		}
		require.Greater(t, longest, 500*time.Millisecond)
		require.LessOrEqual(t, longest, time.Second)
		n.SlowDisk(0)
		require.Zero(t, syncs(f))

		sector := strings.Repeat("-", 512)
		write(f, 0, sector[:510])
		n.FullDisk(true)
		write(f, 0, "xyz")
		k, err := f.WriteAt([]byte("1234"), 509)
		require.Equal(t, 3, k) // what fits into the sector
		require.ErrorIs(t, err, syscall.ENOSPC)
		k, err = f.WriteAt([]byte("5"), 512)
		require.Zero(t, k)
		require.ErrorIs(t, err, syscall.ENOSPC)
		_, err = f.WriteAt([]byte("6"), 2000)
		require.ErrorIs(t, err, syscall.ENOSPC)
		_, err = n.FS().Create("h")
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, "xyz"+sector[3:509]+"123", string(content(t, n.FS(), "f")))
		write(g, 0, "abc")
		n.FullDisk(false)
		write(f, 511, "34")
		return nil
	})
}

// A server writes first, and breaks the connection before the client knows of it.
func TestAResetBeforeTheAnswer(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Second, MaxLatency: time.Second, Reset: 1})
		ln := listen(w.Node("b"))
		_ = w.Go(func() { _, _ = must(ln.Accept()).Write([]byte("hello")) })
		require.ErrorIs(t, reads(must(w.Node("a").Dial(ctx, "tcp", "b:80")), time.Minute), syscall.ECONNRESET)
		return nil
	})
}

// The faults of a Link apply only to its connections.
func TestFaultsOfOneLink(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{Reset: 1})
		w.Link("a", "b").SetFaults(simulation.Faults{})
		a, b := pair(ctx, w)
		must(a.Write([]byte("x")))
		require.NoError(t, reads(b, time.Second))
		w.SetFaults(simulation.Faults{})
		w.Link("a", "b").SetFaults(simulation.Faults{Reset: 1})
		_, _ = a.Write([]byte("x"))
		require.ErrorIs(t, reads(b, time.Second), syscall.ECONNRESET)
		return nil
	})
}

// Each direction has its own bandwidth.
func TestBandwidthOfEachDirection(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := pair(ctx, w)
		w.SetFaults(simulation.Faults{Bandwidth: 1000})
		begin, text := suspend.Now(), make([]byte, 5000)
		must(a.Write(text))
		must(b.Write(text))
		must(io.ReadFull(a, text))
		must(io.ReadFull(b, text))
		require.Equal(t, 5*time.Second, suspend.Now().Sub(begin).Round(time.Millisecond))
		return nil
	})
}

// The notice that there is room also takes time to arrive.
func TestRoomIsKnownLater(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := pair(ctx, w)
		w.SetFaults(simulation.Faults{MinLatency: time.Second, MaxLatency: time.Second})
		var wrote time.Time
		_ = w.Go(func() { must(a.Write(make([]byte, 64<<10+1))); wrote = suspend.Now() })
		_ = suspend.Sleep(ctx, time.Minute)
		begin := suspend.Now()
		must(io.ReadFull(b, make([]byte, 64<<10)))
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, time.Second, wrote.Sub(begin))
		return nil
	})
}

// A Skew changes the clock from now on, and not from the beginning.
func TestSkewBeginsNow(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		_ = suspend.Sleep(ctx, time.Hour)
		w.Node("n").Skew(time.Minute, 2)
		require.Equal(t, w.Now().Add(time.Minute), w.Node("n").Now())
		return nil
	})
}

// Other tasks may run during a Sync that takes no time.
func TestASyncYields(t *testing.T) {
	for name, sync := range map[string]func(f disk.File, disk disk.FS) error{
		"file":  func(f disk.File, _ disk.FS) error { return f.Sync() },
		"names": func(_ disk.File, disk disk.FS) error { return disk.Sync() },
	} {
		during := 0
		for seed := range uint64(20) {
			simulation.Run(func(ctx context.Context, w *simulation.World) error {
				disk, syncs := w.Node("n").FS(), false
				f := must(disk.Create("f"))
				_ = w.Go(func() {
					if syncs {
						during++
					}
				})
				syncs = true
				err := sync(f, disk)
				syncs = false
				return err
			}, simulation.Options{Seed: seed + 1})
		}
		require.Positive(t, during, name)
	}
}

// A torn write ends at a sector boundary of the disk, wherever the write begins.
func TestSectorsOfTheDisk(t *testing.T) {
	torn := 0
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		boot(n, func(disk disk.FS) {
			f := must(disk.Create("f"))
			write(f, 0, string(make([]byte, 2048)))
			require.NoError(t, f.Sync())
			require.NoError(t, disk.Sync())
			write(f, 100, string(bytes.Repeat([]byte{'x'}, 1024)))
		})
		boot(n, func(disk disk.FS) {
			got, kept := content(t, disk, "f"), 0
			for _, part := range [][]byte{got[100:512], got[512:1024], got[1024:1124]} {
				switch bytes.Count(part, []byte{'x'}) {
				case len(part):
					kept++
				case 0:
				default:
					t.Errorf("seed %d: a sector is torn", w.Seed())
				}
			}
			if kept%3 != 0 {
				torn++
			}
		})
		return nil
	}, simulation.TestOptions{Seeds: 50})
	require.Greater(t, torn, 10)
}
