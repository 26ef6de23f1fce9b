package natsactor

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Watch begins to watch, and tell is called once, on a goroutine: with the end of the actor that is served at subject, which is nil or a RemoteError; or with
// ErrUnreachable, if nobody serves it now or there was no sign of life for lease. That may be false: the actor may go on where it cannot be
// reached. lease must be several times the Beat of the server, or a lost sign of life counts as an end. If several servers serve subject,
// only the end of the last server counts. When ctx is done first, the watch ends without a call.
//
// A watching actor sends to itself:
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

// A watch keeps the servers of a subject by their ids.
type watch struct {
	nc      *nats.Conn
	subject string
	inbox   string // receives the answers of servers
	signs   chan *nats.Msg
	alive   map[string]bool // false: it has ended
	ended   bool            // a server has ended
	err     error           // the error of the last server that has ended
}

func (w *watch) ask() {
	_ = w.nc.PublishMsg(&nats.Msg{Subject: askSubject(w.subject), Reply: w.inbox}) // a failure leaves the decision to the lease
}

func (w *watch) run(ctx context.Context, lease time.Duration, closed <-chan nats.Status) (end error, ended bool) {
	w.ask()
	timer := time.NewTimer(lease)
	defer timer.Stop()
	for {
		select {
		case msg := <-w.signs:
			sign, over := w.sign(msg)
			if over {
				return w.end(), true
			}
			if sign {
				timer.Reset(lease)
			}
		case <-timer.C:
			return w.end(), true
		case <-closed:
			return ErrUnreachable, true
		case <-ctx.Done():
			return nil, false
		}
	}
}

// end returns the final error when there is no server any more: the error of the last server, unless another is missing but has not ended.
func (w *watch) end() error {
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

// sign takes a message. It reports whether it is a sign of life, and whether it says that there is nobody.
func (w *watch) sign(msg *nats.Msg) (sign, over bool) {
	if msg.Subject == w.inbox && nobodyThere(msg) {
		return false, !w.anyAlive() // a server that was alive may be connecting again, so its lease decides
	}
	if id := msg.Header.Get(endHeader); id != "" {
		w.alive[id] = false
		w.ended, w.err = true, remoteError(msg)
		w.ask() // there may be others, of which nothing was heard yet
		return false, false
	}
	id := string(msg.Data)
	if _, known := w.alive[id]; !known {
		w.alive[id] = true
	}
	return w.alive[id], false
}
