//go:build !braid_portable

package eventloop

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A closed Conn leaves no timer behind. Its timer would keep its memory until the deadline.
func TestAClosedConnLeavesNoTimer(t *testing.T) {
	l, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, w, err := l.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	timers := func() (n int) {
		for _, r := range l.reactors {
			r.timers.mu.Lock()
			n += len(r.timers.heap)
			r.timers.mu.Unlock()
		}
		return n
	}
	if err := r.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := w.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := timers(); n != 2 {
		t.Fatalf("%d timers for two deadlines", n)
	}
	if r.Close() != nil || w.Close() != nil || timers() != 0 {
		t.Errorf("%d timers are left", timers())
	}
}

func TestIsSame(t *testing.T) {
	four := func(port int, last byte) unix.Sockaddr {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, last}}
	}
	six := func(port int, last byte) unix.Sockaddr {
		return &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: last}}
	}
	for _, test := range []struct {
		local, remote unix.Sockaddr
		same          bool
	}{
		{four(80, 1), four(80, 1), true},
		{four(80, 1), &unix.SockaddrInet4{Port: 80}, true}, // any address of this machine
		{four(80, 1), four(81, 1), false},
		{four(80, 1), four(80, 2), false},
		{six(80, 1), six(80, 1), true},
		{six(80, 1), six(80, 0), true},
		{six(80, 1), six(81, 1), false},
		{six(80, 1), six(80, 2), false},
		{four(80, 1), six(80, 1), false},
		{six(80, 1), four(80, 1), false},
		{&unix.SockaddrUnix{Name: "s"}, &unix.SockaddrUnix{Name: "s"}, false},
	} {
		if isSame(test.local, test.remote) != test.same {
			t.Errorf("isSame(%v, %v) is %v", test.local, test.remote, !test.same)
		}
	}
}
