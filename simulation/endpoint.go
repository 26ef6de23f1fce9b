package simulation

import (
	"net"
	"strconv"
	"time"

	"github.com/braidgo/braid/simulation/internal/saturate"
	"github.com/braidgo/braid/suspend"
)

// An endpoint is a queue of operations with a deadline: one direction of a conn, a listener or a packetConn. See line.
type endpoint struct {
	line
	expired bool
	timer   *timer
	set     int // the number of deadlines that guests have set
}

// deadline sets the deadline to the time t on h's clock.
func (s *endpoint) deadline(h *host, t time.Time) {
	s.expired = false
	w, now := h.world, h.world.clock.start.Add(h.elapsed())
	s.clear(w)
	if t.IsZero() {
		return
	}
	d := t.Sub(now)
	if !w.clock.stock && t != t.Round(0) { // t has a monotonic reading, so the caller has just computed it from time.Now
		if d = saturate.RoundUp(time.Until(t), 100*time.Millisecond); d > time.Second {
			d = saturate.RoundUp(d, time.Second)
		}
	}
	if d <= 0 {
		s.expire()
		return
	}
	s.timer = w.clock.after(h.scaled(d), nil, s.expire)
}

func (s *endpoint) expire() {
	s.timer, s.expired = nil, true
	s.wakeAll()
}

// clear removes the deadline's timer.
func (s *endpoint) clear(w *World) {
	w.clock.discard(s.timer)
	s.timer = nil
}

// An addr is the address of a socket: the name of its node, and a port.
type addr struct {
	host string
	port int
}

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

// giveWay lets other tasks run after a failure, so that a caller that retries forever does not stop the World.
func giveWay() {
	if suspend.Current() != nil {
		suspend.Yield()
	}
}
