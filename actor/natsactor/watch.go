package natsactor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
)

// Watch watches the actor that is served at subject, and returns after it has subscribed. When the actor has ended, Watch calls the
// function tell, once, on a separate goroutine. Its argument is nil or a [*RemoteError]. If nobody serves the subject now, or if there
// was no sign of life for the time lease, and at most an eighth more, the argument is ErrUnreachable. The actor may still be running, but
// be unreachable. Time for which this process does not run, as after a SIGSTOP, does not count. The lease must be several times the
// server's Options.Beat, so that one lost sign of life does not count as an end. If several servers serve subject, only the end of the
// last server counts. If ctx is done first, the function is not called.
//
// An actor that watches another actor can send the end to itself:
//
//	natsactor.Watch(ctx, nc, subject, lease, func(err error) { self.Ref().Send(Down{err}) })
func Watch(ctx context.Context, nc *nats.Conn, subject string, lease time.Duration, tell func(err error)) error {
	w := &watch{nc: nc, subject: subject, inbox: nc.NewRespInbox(), signs: make(chan *nats.Msg, 256), alive: map[string]bool{}}
	status := nc.StatusChanged(nats.CLOSED)
	end := func() { nc.RemoveStatusListener(status) }
	for _, subject := range []string{lifeSubject(subject), w.inbox} {
		sub, err := nc.ChanSubscribe(subject, w.signs)
		if err != nil {
			end()
			return fmt.Errorf("natsactor: %w", err)
		}
		before := end
		end = func() { _ = sub.Unsubscribe(); before() }
	}
	if err := nc.Flush(); err != nil { // no end is missed from here on
		end()
		return fmt.Errorf("natsactor: %w", err)
	}
	go func() {
		defer end()
		if err, ended := w.run(ctx, lease, status); ended {
			tell(err)
		}
	}()
	return nil
}

// watchLine is the Watch of an actor that watches a Ref from Dial. It ends with the local actor behind the Ref, whose own watchers are
// told.
func watchLine(nc *nats.Conn, subject string, lease time.Duration, ended <-chan struct{}, tell func(err error)) (stop func()) {
	if lease < 0 {
		lease = math.MaxInt64
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // Watch may block
		if err := Watch(ctx, nc, subject, lease, func(err error) { cancel(); tell(err) }); err != nil {
			tell(fmt.Errorf("%w: %w", ErrUnreachable, err))
			return
		}
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return cancel
}

// A watch records the servers of a subject by their ids.
type watch struct {
	nc      *nats.Conn
	subject string
	inbox   string // the subject for the servers' answers
	signs   chan *nats.Msg
	alive   map[string]bool // keyed by server id; false means that the server has ended
	ended   bool            // a server has ended
	err     error           // the error of the last server that has ended
}

func (w *watch) ask() {
	_ = w.nc.PublishMsg(&nats.Msg{Subject: askSubject(w.subject), Reply: w.inbox}) // the lease expires if this fails
}

func (w *watch) run(ctx context.Context, lease time.Duration, closed <-chan nats.Status) (end error, ended bool) {
	w.ask()
	tick := time.NewTicker(max(lease/leaseTicks, 1))
	defer tick.Stop()
	silent := 0 // ticks without a sign of life; the first of them may come at once
	for {
		select {
		case msg := <-w.signs:
			sign, over := w.sign(msg)
			if over {
				return w.result(), true
			}
			if sign {
				silent = 0
			}
		case <-tick.C:
			if silent++; silent > leaseTicks {
				return w.result(), true
			}
		case <-closed:
			return ErrUnreachable, true
		case <-ctx.Done():
			return nil, false
		}
	}
}

// leaseTicks is the number of ticks in a lease. After a time for which this process did not run, there is one tick only, so that time does
// not count.
const leaseTicks = 8

// result returns the result of the watch. This is the error of the last server that has ended, or ErrUnreachable if another server has
// disappeared without an end.
func (w *watch) result() error {
	if w.ended && !w.anyAlive() {
		return w.err
	}
	return ErrUnreachable
}

func (w *watch) anyAlive() bool {
	for _, alive := range w.alive {
		if alive {
			return true
		}
	}
	return false
}

// sign handles a message. It reports whether msg is a sign of life, and whether msg says that there is no server.
func (w *watch) sign(msg *nats.Msg) (sign, over bool) {
	if msg.Subject == w.inbox && nobodyThere(msg) {
		return false, !w.anyAlive() // a server that was alive may still reconnect before the lease expires
	}
	if id := msg.Header.Get(endHeader); id != "" {
		w.alive[id] = false
		w.ended, w.err = true, remoteError(msg)
		w.ask() // other servers may exist that have not published yet
		return false, false
	}
	id := string(msg.Data)
	if _, known := w.alive[id]; !known {
		w.alive[id] = true
	}
	return w.alive[id], false
}
