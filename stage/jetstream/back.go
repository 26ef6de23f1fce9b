package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How a message gets to its next try, or to the dead.
//
//	stage.q          -S> first delivery   each delivery is a try until it is answered
//	   a delivery    -S> done             the message is acknowledged
//	   a delivery    -S> stage.q.later.n  a copy with its history, if it has to wait; then the delivery is acknowledged
//	   a delivery    -S> stage.q.again.n  the same, if it need not wait
//	   stage.q.later -W> stage.q.again.n  after the delay, by any process that serves the queue
//	   a delivery    -S> Options.Dead     when it has had its tries; then the delivery is terminated
//
// -S> is the Serve that has the message, and -W> the goroutine wake of any Serve.
//
// Invariant: a copy is stored before its original is acknowledged. If the process dies between the two, the message exists twice.
// If the copy cannot be stored, the original is delivered again after the delay, and that delivery counts as a try.

// Headers of the copies.
const (
	triesHeader = "Braid-Tries" // the number of tries before this copy
	delayHeader = "Braid-Delay" // how long a copy on stage.q.later waits, from its first delivery on
	deadHeader  = "Braid-Dead"  // why the message is dead, if this could not be stored yet
	nameHeader  = "Braid-Name"  // the name of such a message before the copy
)

// A history is what a copy says in its headers.
type history struct {
	tries int
	delay time.Duration
	dead  error
}

// tries returns the number of tries of m, including this delivery.
func tries(m jetstream.Msg) int {
	before, _ := strconv.Atoi(m.Headers().Get(triesHeader)) // there is no header before the first copy
	return before + delivered(m)
}

func delivered(m jetstream.Msg) int {
	meta, err := m.Metadata()
	if err != nil {
		return 1
	}
	return int(meta.NumDelivered)
}

// nameOf returns a name for m that no other message has, even if the stream was deleted and its numbers begin again.
func nameOf(m jetstream.Msg) string {
	if name := m.Headers().Get(nameHeader); name != "" {
		return name
	}
	meta, err := m.Metadata()
	if err != nil {
		return m.Reply()
	}
	return fmt.Sprintf("%s-%d-%d", meta.Stream, meta.Sequence.Stream, meta.Timestamp.UnixNano())
}

// putBack replaces m by a copy with history h.
func (q *Queue[T]) putBack(ctx context.Context, m jetstream.Msg, what string, h history) {
	subject := q.againSubject
	if h.delay > 0 {
		subject = q.laterSubject
	}
	header := copied(m.Headers())
	header.Set(triesHeader, strconv.Itoa(h.tries))
	header.Set(delayHeader, h.delay.String())
	if h.dead != nil {
		header.Set(deadHeader, short(h.dead))
		header.Set(nameHeader, nameOf(m))
	}
	if err := q.replace(ctx, m, subject, header); err != nil {
		q.meet(what, err)
		q.answer(what, m.NakWithDelay(max(h.delay, pullFor))) // the message must not be lost
	}
}

// replace stores a copy of m and acknowledges m.
func (q *Queue[T]) replace(ctx context.Context, m jetstream.Msg, subject func(string) string, header nats.Header) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d-%d", meta.Sequence.Stream, meta.Timestamp.UnixNano())
	if err := q.store(ctx, &nats.Msg{Subject: subject(name), Data: m.Data(), Header: header}, "back-"+name); err != nil {
		return err
	}
	try, cancel := context.WithTimeout(ctx, storeFor)
	defer cancel()
	q.answer("acknowledge", m.DoubleAck(try)) // if this fails, the message is tried twice
	return nil
}

// store publishes m under an id, so that it is stored once if it is published again.
func (q *Queue[T]) store(ctx context.Context, m *nats.Msg, id string) error {
	ctx, cancel := context.WithTimeout(ctx, storeFor)
	defer cancel()
	_, err := q.js.PublishMsg(ctx, m, jetstream.WithMsgID(id))
	return err
}

const storeFor = 5 * time.Second

// copied returns the headers of a message, without those with which NATS would take the copy for the message itself.
func copied(h nats.Header) nats.Header {
	out := nats.Header{}
	for key, values := range h {
		if !strings.HasPrefix(key, "Nats-") {
			out[key] = values
		}
	}
	return out
}

// wake moves the messages whose delay is over back to the queue, until ctx is done. A message's first delivery begins the delay, for
// which the servers keep it. A later delivery usually ends it. But if a process dies after the first delivery, or its answer is lost, the
// next delivery is early, and the message waits for the rest.
func (q *Queue[T]) wake(ctx context.Context) {
	for ctx.Err() == nil {
		batch, err := q.later.Fetch(100, jetstream.FetchMaxWait(pullFor))
		if err == nil {
			for m := range batch.Messages() {
				q.wakeOne(ctx, m)
			}
			err = batch.Error()
		}
		if err != nil && ctx.Err() == nil {
			q.meet("wait for delays", err)
			pause(ctx, pullFor/4)
		}
	}
}

func (q *Queue[T]) wakeOne(ctx context.Context, m jetstream.Msg) {
	if left := delayLeft(m, q.o.AckWait); left > 0 {
		q.answer("delay", m.NakWithDelay(left))
		return
	}
	if err := q.replace(context.WithoutCancel(ctx), m, q.againSubject, copied(m.Headers())); err != nil {
		q.meet("wake", err)
		q.answer("wake", m.NakWithDelay(pullFor))
	}
}

// delayLeft returns how long a copy still has to wait. At its first delivery this is the whole delay. A second delivery comes after this
// delay or after ackWait, so it is early only if the delay is longer than ackWait. Then the rest is counted from the time at which the
// servers have stored the copy. A shorter delay does not depend on the clocks of different machines.
func delayLeft(m jetstream.Msg, ackWait time.Duration) time.Duration {
	delay, _ := time.ParseDuration(m.Headers().Get(delayHeader))
	meta, err := m.Metadata()
	switch {
	case err != nil || meta.NumDelivered == 1:
		return delay
	case delay <= ackWait:
		return 0
	}
	return min(delay, delay-time.Since(meta.Timestamp))
}

// bury stores a dead message with the reason, and removes it from the queue. If it cannot be stored, it waits with its reason, and is
// not tried again.
func (q *Queue[T]) bury(ctx context.Context, m jetstream.Msg, reason error) {
	if q.o.Dead != "" {
		if err := q.storeDead(ctx, m, reason); err != nil {
			q.meet("bury", err)
			q.putBack(ctx, m, "bury later", history{tries: q.o.Tries, delay: pullFor, dead: reason})
			return
		}
	}
	if err := m.TermWithReason(short(reason)); err != nil {
		q.meet("bury", err)
		return
	}
	q.dead.Add(1)
	q.report("dead", reason)
}

// storeDead stores the message with its headers, or, if this is too large, without its headers and data.
func (q *Queue[T]) storeDead(ctx context.Context, m jetstream.Msg, reason error) error {
	header := copied(m.Headers())
	for _, ours := range []string{delayHeader, deadHeader, nameHeader} {
		header.Del(ours)
	}
	header.Set("Reason", short(reason))
	err := q.store(ctx, &nats.Msg{Subject: q.o.Dead, Data: m.Data(), Header: header}, nameOf(m))
	if tooLarge(err) {
		header = nats.Header{"Reason": {short(reason)}, "Size": {strconv.Itoa(len(m.Data()))}}
		err = q.store(ctx, &nats.Msg{Subject: q.o.Dead, Header: header}, nameOf(m))
	}
	return err
}

// tooLarge reports whether the client or the servers have refused a message because of its size, or because of the size of its headers.
func tooLarge(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, nats.ErrMaxPayload) || errors.As(err, &api) && (api.ErrorCode == 10054 || api.ErrorCode == 10097)
}

// short returns the text of err, cut to a length that any header holds, on one line.
func short(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > longestText {
		text = text[:longestText]
	}
	return strings.ToValidUTF8(text, "")
}

const longestText = 4096 // bytes
