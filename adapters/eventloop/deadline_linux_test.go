//go:build !braid_portable

package eventloop

import (
	"testing"
	"time"
)

// A Conn that is closed leaves no timer, which would keep its memory up to its deadline.
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
