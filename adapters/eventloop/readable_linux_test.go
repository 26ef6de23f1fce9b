//go:build !braid_portable

package eventloop_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// A task waits for a connection and for a time.
func ExampleConn_ReadableOp() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()
	r, w, err := loop.Pipe()
	if err != nil {
		panic(err)
	}
	for range 2 {
		readable := suspend.CaseOf(r.ReadableOp())
		won, err := suspend.Select(context.Background(), readable, suspend.CaseOf(suspend.After(10*time.Millisecond)))
		fmt.Println("readable:", won == readable, err)
		fmt.Fprint(w, "x")
	}
	// Output:
	// readable: false <nil>
	// readable: true <nil>
}

// A Select has a connection and a timeout as its cases.
func TestReadableOp(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer a.Close()
	p := make([]byte, 3)
	wait := func(d time.Duration) bool {
		readable := suspend.CaseOf(b.ReadableOp())
		won, err := suspend.Select(context.Background(), readable, suspend.CaseOf(suspend.After(d)))
		require.NoError(t, err)
		return won == readable
	}
	task(t, l, func() {
		require.False(t, wait(10*time.Millisecond), "nothing has come")
		must(a.Write([]byte("123456789")))
		require.True(t, wait(time.Minute))
		require.True(t, wait(time.Minute), "it reads nothing")
		must(b.Read(p))
		require.True(t, wait(time.Minute), "no event reports the rest of the bytes")
		must(b.Read(p))
		must(b.Read(p))
		require.False(t, wait(10*time.Millisecond))
		require.NoError(t, b.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		require.True(t, wait(time.Minute), "the deadline")
		require.NoError(t, b.SetReadDeadline(time.Time{}))
		require.False(t, wait(10*time.Millisecond))
		require.NoError(t, a.CloseWrite())
		require.True(t, wait(time.Minute), "the end")
		require.NoError(t, b.Close())
		require.True(t, wait(time.Minute), "closed")
	})
}

// A Read and several ReadableOps wait at the same time. An event wakes all of them, and an earlier ReadableOp does not delay the
// Read.
func TestReadableOpBesideRead(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer a.Close()
	defer b.Close()
	done := make(chan error, 4)
	for i := range 4 {
		require.NoError(t, l.Go(func() {
			var err error
			if i == 2 {
				_, err = b.Read(make([]byte, 1))
			} else {
				_, err = suspend.Do(context.Background(), b.ReadableOp())
			}
			done <- err
		}))
	}
	suspended(t, l, 4)
	must(a.Write([]byte("x")))
	within(t, func() {
		for range 4 {
			require.NoError(t, <-done)
		}
	})
}

// TestReadableOpBeforeItsEvent begins a wait after another task has read the bytes, and before the reactor delivers their event. The
// event must not end the wait: code that relies on it would wait in its Read, with a task.
func TestReadableOpBeforeItsEvent(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer a.Close()
	defer b.Close()
	over := make(chan struct{})
	suspend.Then(bg, b.ReadableOp(), l, func(struct{}, error) { close(over) })
	for range 3 {
		eventloop.DeliverInput(b)
		task(t, l, func() { require.NoError(t, suspend.Sleep(bg, time.Millisecond)) }) // a callback before it would have run
	}
	select {
	case <-over:
		require.Fail(t, "an old event has ended the wait")
	default:
	}
	must(a.Write([]byte("y")))
	within(t, func() { <-over })
}

// TestReadableOpBesideAReader is the same, while another task waits in its Read, which the event does not end either.
func TestReadableOpBesideAReader(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer a.Close()
	defer b.Close()
	readable, read := make(chan struct{}), make(chan string, 1)
	require.NoError(t, l.Go(func() {
		var p [1]byte
		must(b.Read(p[:]))
		read <- string(p[:])
	}))
	suspended(t, l, 1)
	suspend.Then(bg, b.ReadableOp(), l, func(struct{}, error) { close(readable) })
	for range 3 {
		eventloop.DeliverInput(b)
		task(t, l, func() { require.NoError(t, suspend.Sleep(bg, time.Millisecond)) })
	}
	select {
	case <-readable:
		require.Fail(t, "an old event has ended the wait")
	default:
	}
	must(a.Write([]byte("y")))
	within(t, func() { require.Equal(t, "y", <-read) })
	within(t, func() { <-readable })
}

// A UDP socket can also be a case of a Select.
func TestReadableOpOfPackets(t *testing.T) {
	l := open(t, eventloop.Options{})
	socket := must(l.ListenPacket("udp", "127.0.0.1:0"))
	defer socket.Close()
	readable := socket.(interface{ ReadableOp() suspend.Op[struct{}] }).ReadableOp()
	raw := must(socket.(syscall.Conn).SyscallConn())
	require.NoError(t, raw.Control(func(sys uintptr) { require.Positive(t, sys) }))
	done := make(chan error, 1)
	require.NoError(t, l.Go(func() { _, err := suspend.Do(context.Background(), readable); done <- err }))
	suspended(t, l, 1)
	must(socket.WriteTo([]byte("x"), socket.LocalAddr()))
	within(t, func() { require.NoError(t, <-done) })
	n, _, err := socket.ReadFrom(make([]byte, 2))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
