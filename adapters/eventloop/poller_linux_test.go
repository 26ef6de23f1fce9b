//go:build !braid_portable

package eventloop

import (
	"context"
	"net"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A waker is late, and the Loop ends before it writes. It must write to its own descriptor, and not to a newer one with the same
// number.
func TestLateWake(t *testing.T) {
	l, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := l.reactors[0]
	for !r.core.Asleep() || !r.core.Rouse() { // sets the word to awake, as a push would
		runtime.Gosched()
	}
	closed := make(chan struct{})
	go func() { _ = l.Close(); close(closed) }()
	for !r.core.Done() {
		runtime.Gosched()
	}
	// The waker has the debt of the wake-up, so no other push wakes the reactor. This write does.
	one := [8]byte{1}
	_, _ = unix.Write(pollerOf(r).wakefd, one[:])
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	if n := pollerOf(r).refs.Load(); n != 1 {
		t.Fatalf("%d references", n)
	}
	if _, err := unix.FcntlInt(uintptr(pollerOf(r).wakefd), unix.F_GETFD, 0); err != nil {
		t.Fatal("closed under its waker:", err)
	}
	r.poller.wake()
	if n := pollerOf(r).refs.Load(); n != 0 {
		t.Fatalf("%d references", n)
	}
	f, err := os.Open(os.DevNull) // most likely gets the old number; the Close fails if another goroutine has closed it
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// idle makes a reactor that no goroutine runs.
func idle(t *testing.T) *reactor {
	t.Helper()
	r, err := newReactor(&Loop{base: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.discard)
	return r
}

// readEnd makes a pipe, and gives its reading end to r.
func readEnd(t *testing.T, r *reactor) (d *fd, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[1]) })
	d, err := newFD(r, p[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, p[1]
}

// A descriptor is closed while the reactor already has an event for it. The event must not reach the next descriptor in the same
// slot.
func TestStaleEvent(t *testing.T) {
	r := idle(t)
	first, w1 := readEnd(t, r)
	_, _ = unix.Write(w1, []byte("x"))
	if !r.poller.poll() {
		t.Fatal("no event")
	}
	_ = first.close()
	second, w2 := readEnd(t, r)
	if second.slot != first.slot || second.sys != first.sys {
		t.Fatal("uncovered: slot or number not reused")
	}
	second.rd.mayBeReady()
	r.poller.dispatch()
	if second.rd.ready {
		t.Error("the event of another descriptor")
	}
	_, _ = unix.Write(w2, []byte("x"))
	r.poller.poll()
	r.poller.dispatch()
	if !second.rd.ready {
		t.Error("its own event is lost")
	}
	_ = second.close()
}

// An edge on another thread comes after the system call that would block and before the wait. It ends the wait.
func TestEdgeBeforeWait(t *testing.T) {
	r := idle(t)
	d, w := readEnd(t, r)
	defer d.close()
	d.rd.mayBeReady()
	if _, err := unix.Read(d.sys, make([]byte, 1)); err != unix.EAGAIN {
		t.Fatal(err)
	}
	_, _ = unix.Write(w, []byte("x"))
	r.poller.poll()
	r.poller.dispatch()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := d.rd.wait(contexts{ctx}); err != nil {
		t.Error("the edge is lost:", err)
	}
}

// A descriptor is closed by the last system call that uses it, not during the call.
func TestCloseWaitsForSystemCalls(t *testing.T) {
	r := idle(t)
	d, _ := readEnd(t, r)
	if !d.incref() {
		t.Fatal("closed")
	}
	_ = d.close()
	if d.incref() {
		t.Error("a call began after close")
	}
	if _, err := unix.FcntlInt(uintptr(d.sys), unix.F_GETFD, 0); err != nil {
		t.Error("closed under a call")
	}
	d.decref()
	if _, err := unix.FcntlInt(uintptr(d.sys), unix.F_GETFD, 0); err != unix.EBADF {
		t.Error("not closed")
	}
}

// A reactor may end while the Close that ended it is still about to refuse descriptors. Its epoll instance is closed by then, and
// the number may belong to another file.
func TestReactorThatHasEndedRefusesDescriptors(t *testing.T) {
	r, err := newReactor(&Loop{base: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	r.discard()
	stranger, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(stranger)
	if stranger != pollerOf(r).epfd {
		t.Fatal("uncovered: number not reused")
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	if _, err := newFD(r, p[0], nil); err != errClosed {
		t.Errorf("registered with a reused number: %v", err)
	}
}

// Without IPv6, a Listen on an IPv6 address does not listen on all IPv4 addresses.
func TestListenWithoutIPv6(t *testing.T) {
	for host, want := range map[string]unix.Sockaddr{
		"":          &unix.SockaddrInet4{Port: 80},
		"::":        &unix.SockaddrInet4{Port: 80},
		"::1":       nil,
		"127.0.0.1": nil,
	} {
		_, sa := listenAddr("tcp", &net.TCPAddr{IP: net.ParseIP(host), Port: 80})
		if got := withoutIPv6(sa); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func pollerOf(r *reactor) *poller { return any(r.poller).(*poller) }
