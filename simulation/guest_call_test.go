//go:build unix

package simulation_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// A goroutine that was in a system call before the run does not count as a guest.
func TestGuestBesideACall(t *testing.T) {
	*simulation.BusyAfter = 5 * time.Second
	defer func() { *simulation.BusyAfter = 10 * time.Second }()
	var ends [2]int
	require.NoError(t, syscall.Pipe(ends[:]))
	read := make(chan bool)
	go func() { defer close(read); _, _ = syscall.Read(ends[0], make([]byte, 1)) }()
	r := guests(t, func(ctx context.Context, w *simulation.World) error { time.Sleep(time.Hour); return nil })
	require.NoError(t, r.Err)
	_, _ = syscall.Write(ends[1], []byte("x"))
	<-read
	require.NoError(t, syscall.Close(ends[0]))
	require.NoError(t, syscall.Close(ends[1]))
}
