//go:build !braid_portable

package eventloop_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/braidgo/braid/adapters/eventloop"
)

// A Dial that waits for room in the backlog of a unix socket fails when the Loop is closed, like any other Dial. (A Dial of
// package net does not wait here.)
func TestCloseEndsADialThatWaitsForTheBacklog(t *testing.T) {
	l := open(t, eventloop.Options{})
	addr := full(t, syscall.AF_UNIX, &syscall.SockaddrUnix{Name: t.TempDir() + "/s"}, "unix")
	failed := make(chan error, 1)
	must(0, l.Go(func() {
		_, err := l.Dial(context.Background(), "unix", addr.String())
		failed <- err
	}))
	suspended(t, l, 1)
	within(t, func() {
		must(0, l.Close())
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
