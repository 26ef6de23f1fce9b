//go:build unix

package natsactor_test

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/natsactor"
)

// The time during which a process is stopped does not count towards its leases: after a stop that is longer than a lease, an Ask and a
// Watch continue.
func TestStoppedProcess(t *testing.T) {
	const lease = 4 * time.Second
	s := listen(t, -1)
	defer s.Shutdown()
	nc := ok(nats.Connect(s.ClientURL()))
	defer nc.Close()
	served := actor.Spawn(bg, pool(t), adder, actor.Options[any]{})
	defer served.Stop()
	srv := ok(natsactor.Serve(nc, "adder", served, codec(), natsactor.Options{Beat: lease / 10}))
	defer srv.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BRAID_ASK="+s.ClientURL(), "BRAID_LEASE="+lease.String())
	cmd.Stderr = os.Stderr
	lines := bufio.NewScanner(ok(cmd.StdoutPipe()))
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	require.True(t, lines.Scan())
	questions := make(chan *nats.Msg, 100)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(3 * lease / 2)
	_ = ok(nc.ChanSubscribe("_braid.life.adder.held", questions))
	require.NoError(t, nc.Flush())
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	for range 2 { // the second comes after an answer to the first
		select {
		case <-questions:
		case <-time.After(short):
			t.Fatal("the process does not ask whether its request is held")
		}
	}
	require.NoError(t, served.Send(add{1}))
	require.True(t, lines.Scan())
	require.Equal(t, "1 <nil>", lines.Text())
}
