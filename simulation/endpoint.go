package simulation

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/braidgo/braid/suspend"
)

// An endpoint is a queue of operations with a deadline: one direction of a conn, a listener or a packetConn. Only the first operation in
// line may complete.
type endpoint struct {
	line    []*turn
	expired bool
	timer   *timer
	set     int // the number of deadlines that guests have set
}

// A turn is an operation in the line of an endpoint. The caller of the operation is a task or a guest.
type turn struct {
	r    suspend.Resumer[struct{}]
	w    *World
	woke chan struct{} // wakes a guest; nil if the caller is a task
}

// enqueue adds an operation of the caller to the line. It returns nil if the caller is outside the World.
func (s *endpoint) enqueue(w *World) *turn {
	guest, ok := w.beginCall()
	if !ok {
		return nil
	}
	t := &turn{w: w}
	if guest {
		t.woke = make(chan struct{}, 1)
	}
	s.line = append(s.line, t)
	return t
}

func (s *endpoint) isFirst(t *turn) bool { return s.line[0] == t }

// dequeue removes the operation t from the line, and wakes the next operation.
func (s *endpoint) dequeue(t *turn) {
	s.line = without(s.line, t)
	s.wakeFirst()
	if t.woke != nil {
		t.w.guests.endCall()
	}
}

// wait suspends the caller until t is woken. A wake-up may be spurious, so the caller must check its condition again.
func (t *turn) wait() {
	w := t.w
	if t.woke != nil {
		w.guests.wait(context.Background(), t.woke)
		return
	}
	w.still = w.o.Preempt
	_, _ = suspend.Suspend(context.Background(), func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		t.r = r
		return struct{}{}, false
	})
}

func (t *turn) wake() {
	if g := t.w.calling(); t.woke != nil {
		select {
		case t.woke <- struct{}{}:
		default:
		}
		t.w.guests.woken = true
	} else if g != nil { // a guest holds the lock that Resume takes, and must not call Resume
		g.ask(nil, t.wake)
	} else {
		t.r.Resume(struct{}{}, nil)
	}
}

func (s *endpoint) wakeFirst() {
	if len(s.line) > 0 {
		s.line[0].wake()
	}
}

func (s *endpoint) wakeAll() {
	for _, t := range s.line {
		t.wake()
	}
}

// deadline sets the deadline to the time t on h's clock.
func (s *endpoint) deadline(h *host, t time.Time) {
	s.expired = false
	w, now := h.world, h.world.start.Add(h.clock())
	s.clear(w)
	if t.IsZero() {
		return
	}
	d := t.Sub(now)
	if !w.stock && t != t.Round(0) { // t has a monotonic reading, so the caller has just computed it from time.Now
		if d = roundUp(time.Until(t), 100*time.Millisecond); d > time.Second {
			d = roundUp(d, time.Second)
		}
	}
	if d <= 0 {
		s.expire()
		return
	}
	s.timer = w.after(h.scaled(d), nil, s.expire)
}

func (s *endpoint) expire() {
	s.timer, s.expired = nil, true
	s.wakeAll()
}

// clear removes the deadline's timer.
func (s *endpoint) clear(w *World) {
	w.discard(s.timer)
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
