package simulation

import (
	"context"
	"net"
	"runtime"

	"github.com/braidgo/braid/simulation/internal/chance"
)

// A Host gives a program of guests access to one boot of a Node. After a Crash of the node, calls of the Host fail with net.ErrClosed, even
// if the node has restarted. A program that ignores these errors ends with runtime.Goexit after about 2000 calls that wait. With
// simulation/overlay the program does not run after a Crash.
//
// With simulation/overlay, on Linux, the functions of package os use the files of the node: real files in a folder for each node, so that locks and
// memory maps work. See "Files of a node" in simulation/README.md.
type Host struct {
	n    *Node
	boot int
	late int // the number of calls after the end of the boot
}

// Start runs f on a new goroutine, as a program on n. This goroutine, and each goroutine that f starts, is a guest. The end of the run cancels
// ctx, so that f may end its goroutines. A Crash of n ends the guests: with simulation/overlay, none of their goroutines runs again, and their
// deferred functions do not run; without it, Crash cancels ctx. If n has crashed, Start restarts n. Start panics without Options.Guests.
func (n *Node) Start(f func(ctx context.Context, h *Host)) {
	w := n.world
	switch {
	case f == nil:
		panic("simulation: Start with a nil function")
	case w.guests == nil:
		panic("simulation: Start without Options.Guests")
	}
	w.do(func() {
		n.used = true
		start := func() {
			ctx, stop := context.WithCancel(context.Background())
			n.stops = append(n.stops, stop)
			h := &Host{n: n, boot: n.boots}
			w.guests.start(&n.host, h, func() { f(ctx, h) })
		}
		if n.dead {
			n.boot(start)
		} else {
			start()
		}
	})
}

// Listen listens on an address of the form ":port", as Node.Listen does.
func (h *Host) Listen(network, address string) (l net.Listener, err error) {
	err = h.gone("listen", network)
	h.call(context.Background(), func(done func()) {
		l, err = h.n.Listen(network, address)
		done()
	})
	return l, err
}

// ListenPacket opens a UDP socket, as Node.ListenPacket does.
func (h *Host) ListenPacket(network, address string) (c net.PacketConn, err error) {
	err = h.gone("listen", network)
	h.call(context.Background(), func(done func()) {
		c, err = h.n.ListenPacket(network, address)
		done()
	})
	return c, err
}

// Dial connects to an address of the form "name:port", as net.Dialer.DialContext does.
func (h *Host) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = h.gone("dial", network)
	h.task(ctx, func() { c, err = h.n.Dial(ctx, network, address) })
	return c, err
}

// onDisk calls f, which may wait. For a guest, a task of the node calls f.
func onDisk[T any](h *Host, f func() (T, error)) (v T, err error) {
	if h == nil {
		return f()
	}
	return inTask(h, f)
}

// onDiskErr is onDisk for a function that returns only an error.
func onDiskErr(h *Host, f func() error) error {
	_, err := onDisk(h, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func inTask[T any](h *Host, f func() (T, error)) (v T, err error) {
	ended := false
	h.task(context.Background(), func() { v, err = f(); ended = true })
	if !ended {
		runtime.Goexit()
	}
	return v, err
}

// task calls f in a task of the node, unless the boot of h is over.
func (h *Host) task(ctx context.Context, f func()) { h.call(ctx, h.inTask(f)) }

// inTask returns a function for call that calls f in a task of the node.
func (h *Host) inTask(f func()) func(done func()) {
	return func(done func()) {
		by := h.n.world.acting
		if h.n.submit(ready{host: &h.n.host, f: func() { defer done(); f() }, as: &way{done, &by}}) != nil {
			done()
		}
	}
}

// close calls f in a task of the node, unless the boot of h or the run is over. It never ends the guest, which may hold locks. A nil Host is
// that of a task.
func (h *Host) close(f func()) {
	if h == nil {
		f()
		return
	}
	n := h.n
	n.world.guests.attempt(context.Background(), &n.host, func(done func()) {
		if n.dead || n.boots != h.boot {
			done()
		} else {
			h.inTask(f)(done)
		}
	})
}

func (h *Host) gone(op, network string) error {
	return &net.OpError{Op: op, Net: network, Err: net.ErrClosed}
}

// Name returns the name of the node.
func (h *Host) Name() string { return h.n.name }

// call calls f on the World, unless the boot of h is over. It ends a guest that has called too often after the end of the boot.
func (h *Host) call(ctx context.Context, f func(done func())) {
	n, many := h.n, false
	n.world.guests.call(ctx, &n.host, func(done func()) {
		if n.dead || n.boots != h.boot {
			h.late++
			many = h.late > 2000
			done()
		} else {
			f(done)
		}
	})
	if many {
		runtime.Goexit()
	}
}

// hostHere returns the Host of the guest that the calling goroutine belongs to. It returns nil for main, and for a goroutine that belongs to no
// guest; to know a guest needs the overlay. It takes no lock of a World.
func hostHere() *Host {
	if id := chance.Node(); id != 0 {
		r, _ := residents.Load(id)
		if r, ok := r.(resident); ok {
			return r.h
		}
	}
	return nil
}
