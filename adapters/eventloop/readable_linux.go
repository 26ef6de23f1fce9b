//go:build !braid_portable

package eventloop

import (
	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/suspend"
)

// A readable is the suspend.Source of a ReadableOp. Unlike a read, a readable does not hold the turn and does not clear
// the latch. Each Try polls the descriptor under the guard, so that a later event finds the waiter in the queue.
type readable side

func (d *fd) readableOp() suspend.Op[verdict] { return suspend.OpOf[verdict]((*readable)(&d.rd)) }

func (s *readable) Guard() *suspend.Guard              { return &s.guard }
func (s *readable) Enqueue(r suspend.Resumer[verdict]) { s.waiting.Push(r, struct{}{}) }
func (s *readable) Remove(r suspend.Resumer[verdict])  { s.waiting.Remove(r) }

func (s *readable) Try() (v verdict, ok bool, err error) {
	if v := (*side)(s).failed(); v != undecided {
		return v, true, nil
	}
	if (*side)(s).hasInput() {
		return isReady, true, nil
	}
	return undecided, false, nil
}

func (d *fd) hasInput() bool { return d.rd.hasInput() }

// hasInput reports whether a Read would return without waiting. It asks the system, and can be called under the guard.
func (s *side) hasInput() bool {
	d := s.fd
	if !d.incref() {
		return true
	}
	defer d.decref()
	fds := []unix.PollFd{{Fd: int32(d.sys), Events: unix.POLLIN | unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil // the read that follows returns the error
		}
	}
}
