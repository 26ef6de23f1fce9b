package natsactor

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
)

// tend tracks the connection, the requests and the messages until the actor a has ended and nothing is pending.
func (d *dialled) tend(a actor.Actor, closed bool, status <-chan nats.Status) {
	tick := 100 * time.Millisecond
	if d.lease > 0 {
		tick = min(tick, max(d.lease/4, time.Millisecond))
	}
	timer, due := time.NewTimer(tick), time.Now().Add(tick)
	again := func() {
		timer.Reset(tick)
		due = time.Now().Add(tick)
	}
	defer timer.Stop()
	if closed { // the connection may have been closed before StatusChanged
		d.broken(a, nats.CLOSED)
	}
	flushing, ended := false, a.Done()
	for ended != nil || d.busy() {
		select {
		case <-ended:
			ended = nil // the last messages may still be in doubt
		case s := <-status:
			d.broken(a, s)
		case n := <-d.flushed:
			flushing = false
			d.believe(n, a, status)
		case <-d.wake:
			again()
		case <-timer.C:
			d.breaks(a, status)
			now := time.Now()
			if late := now.Sub(due); late > tick {
				d.prolong(late, now)
			}
			n, more := d.examineAsked(now)
			if n > 0 && !flushing {
				flushing = true
				go d.flush(n)
			}
			if more {
				again()
			}
		}
	}
}

// prolong lets the leases of all requests end later, because a timer was late: this process did not run for that time, so that it may
// not have read an answer yet.
func (d *dialled) prolong(by time.Duration, now time.Time) {
	d.mu.Lock()
	for _, a := range d.asked {
		if a.held = a.held.Add(by); a.held.After(now) { // the request, or its last answer, is younger than the stop
			a.held = now
		}
	}
	d.mu.Unlock()
}

// broken handles a status of the connection. It reports the messages in doubt if the connection has broken.
func (d *dialled) broken(a actor.Actor, s nats.Status) {
	if d.away = d.away && s == nats.CLOSED || s == nats.RECONNECTING || s == nats.DISCONNECTED; d.away {
		d.doubt() // a Close of a working connection flushes it, so no message is in doubt
	}
	if s == nats.CLOSED {
		a.Kill(nats.ErrConnectionClosed) // every pending Ask fails, too
		d.mu.Lock()
		d.closed = true
		d.mu.Unlock()
	}
}

// breaks handles all statuses that are already in the channel.
func (d *dialled) breaks(a actor.Actor, status <-chan nats.Status) {
	for {
		select {
		case s := <-status:
			d.broken(a, s)
		default:
			return
		}
	}
}

// believe handles the result of a flush. It handles the statuses first, because a flush on a new connection does not count messages
// that the old connection has lost.
func (d *dialled) believe(n uint64, a actor.Actor, status <-chan nats.Status) {
	d.breaks(a, status)
	d.recordFlush(n)
}

// busy reports whether tend's timer is set, or is about to be set.
func (d *dialled) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tending
}

// doubt reports the messages that may have been lost when the connection broke.
func (d *dialled) doubt() {
	d.mu.Lock()
	n := d.given - d.settled
	d.settled, d.flushes, d.broke = d.given, d.given, true
	d.mu.Unlock()
	if n > 0 {
		d.lose(int(n), ErrInDoubt)
	}
}

// flush waits until the server has received the first n messages. It then sends n to the channel d.flushed, or 0 if the flush fails.
func (d *dialled) flush(n uint64) {
	if d.nc.FlushTimeout(flushFor) != nil {
		n = 0
	}
	d.flushed <- n // this send does not block, since flushes do not overlap
}

const flushFor = 5 * time.Second

// recordFlush records that the server has received the first n messages. If n is 0, settle has no effect.
func (d *dialled) recordFlush(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > 0 {
		d.settled = max(d.settled, d.flushes)
		d.flushes = max(d.flushes, n)
	}
}

func (d *dialled) lose(n int, err error) {
	if d.onLost != nil {
		d.onLost(n, err)
	}
}

const maxTokens = 4096 // the maximum number of tokens in a question

// examineAsked fails the requests whose lease has expired, removes requests whose Ask no longer waits, and sends questions about the rest. It
// returns the number of messages to flush, or 0, and reports whether it must be called again.
func (d *dialled) examineAsked(now time.Time) (flush uint64, more bool) {
	connected := d.nc.IsConnected() // without a connection, questions would only be buffered
	var over []carrier.Carrier
	var ask []string
	var probes []*asker
	d.mu.Lock()
	for token, a := range d.asked {
		switch {
		case !a.q.Waited(): // the reply to a cancelled Ask may never come
			delete(d.asked, token)
			a.by.done()
		case d.lease < 0:
		case now.Sub(a.held) >= d.lease:
			over = append(over, a.q)
			delete(d.asked, token)
			a.by.done()
		case connected && now.Sub(a.asked) >= d.lease/3:
			a.asked = now
			ask = append(ask, token)
			if a.by != nil {
				probes = append(probes, a.by)
			}
		}
	}
	if connected && d.given > d.settled {
		flush = d.given
	}
	more = len(d.asked) > 0 || d.sending || !d.closed && d.given > d.settled
	d.tending = more
	d.mu.Unlock()
	for _, q := range over {
		q.Refuse(noReply(fmt.Errorf("%w, and %w", ErrUnreachable, ErrInDoubt)))
	}
	for len(ask) > 0 {
		n := min(len(ask), maxTokens)
		question := d.id + "\n" + strings.Join(ask[:n], "\n")
		_ = d.nc.PublishMsg(&nats.Msg{Subject: heldSubject(d.subject), Reply: d.inbox + heldToken, Data: []byte(question)})
		ask = ask[n:]
	}
	for _, by := range probes {
		_ = d.nc.PublishMsg(&nats.Msg{Subject: heldSubject(d.subject), Header: nats.Header{askHeader: {by.key}, chainHeader: by.chains()}})
	}
	return flush, more
}
