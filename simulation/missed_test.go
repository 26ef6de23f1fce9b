package simulation_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// Faults of nodes that are not used fail a Test at its end, and are in the trace and the Report of a Run, for every kind of
// fault. A node is used if a task, a listener, a dial or a file belongs to it.
func TestFaultsThatHitNothing(t *testing.T) {
	main := func(ctx context.Context, w *simulation.World) error {
		_ = w.Node("task").Go(func() {})
		_, _ = w.Node("listener").Listen("tcp", ":80")
		_, _ = w.Node("socket").ListenPacket("udp", ":80")
		_, _ = w.Node("dialer").Dial(ctx, "tcp", "listener:80")
		_, _ = w.Node("disk").FS().Create("f")
		w.Node("crashd").Crash()
		w.Node("pausd").Pause()
		w.Node("skewd").Skew(time.Second, 1)
		w.Node("slw").SlowDisk(time.Second)
		w.Link("task", "linkd").Cut()
		w.Partition([]string{"lisener"}, []string{"socket"})
		for _, name := range []string{"dialer", "disk"} {
			w.Node(name).Crash()
		}
		w.Node("unharmed")
		return suspend.Sleep(ctx, time.Second)
	}
	if child, out := apart(t, true); child {
		simulation.Test(t, main, simulation.TestOptions{Seeds: 3})
	} else {
		require.Contains(t, out, "the faults for crashd, linkd, lisener, pausd, skewd, slw had no effect")
		require.Contains(t, out, "3 seeds, ", "the Test has run to its end")
	}
	var trace bytes.Buffer
	r := simulation.Run(main, simulation.Options{Seed: 1, Trace: &trace})
	require.NoError(t, r.Err)
	require.Contains(t, trace.String(), "crashd, linkd, lisener, pausd, skewd, slw: faults, but no task, guest, listener, dial or file on a node of this name")
	require.Equal(t, map[string]bool{"task": true, "listener": true, "socket": true, "dialer": true, "disk": true,
		"crashd": false, "linkd": false, "lisener": false, "pausd": false, "skewd": false, "slw": false}, r.Hits)
}
