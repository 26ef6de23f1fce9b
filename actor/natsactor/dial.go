package natsactor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
)

// Dial returns a Ref for the actor that is served at subject: that of an actor here, on a scheduler, which reacts by publishing. When ctx is
// done it is killed. It fails, with all that was asked through it, when the connection is closed. Stop ends it, and so do an
// encoding that fails and the errors of NATS.
func Dial[M any](ctx context.Context, on suspend.Spawner, nc *nats.Conn, subject string, codec Codec[M]) (actor.Ref[M], error) {
	d := &dialled{inbox: nc.NewRespInbox() + ".", asked: map[string]actor.Carrier{}, sweepAt: 64}
	sub, err := nc.Subscribe(d.inbox+"*", func(msg *nats.Msg) { d.reply(msg, codec.DecodeReply) })
	if err != nil {
		return actor.Ref[M]{}, fmt.Errorf("natsactor: %w", err)
	}
	return actor.Spawn(ctx, on, func(_ context.Context, self *actor.Self[M]) error {
		self.OnEnd(func() { _ = sub.Unsubscribe() })
		return actor.Loop(func() error {
			return self.React(func(m M) error {
				data, err := codec.Encode(m)
				if err != nil {
					return err
				}
				out := &nats.Msg{Subject: subject, Data: data}
				if q, ok := actor.CarrierOf(m); ok && q.Waited() {
					out.Reply = d.ask(q)
				}
				return nc.PublishMsg(out)
			})
		})
	}), nil
}

// A dialled keeps the requests that were published and are not answered.
type dialled struct {
	inbox string

	mu      sync.Mutex
	asked   map[string]actor.Carrier // by the last token of the reply's subject
	last    uint64
	sweepAt int
}

// ask returns the subject for the reply to q.
func (d *dialled) ask(q actor.Carrier) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) >= d.sweepAt { // the replies to cancelled Asks may never come
		for token, q := range d.asked {
			if !q.Waited() {
				delete(d.asked, token)
			}
		}
		d.sweepAt = max(64, 2*len(d.asked))
	}
	d.last++
	token := strconv.FormatUint(d.last, 36)
	d.asked[token] = q
	return d.inbox + token
}

// reply passes a reply on.
func (d *dialled) reply(msg *nats.Msg, decode func(data []byte, to any) error) {
	token := strings.TrimPrefix(msg.Subject, d.inbox)
	d.mu.Lock()
	q, ok := d.asked[token]
	delete(d.asked, token)
	d.mu.Unlock()
	if !ok {
		return
	}
	if err := failure(msg); err != nil {
		q.Refuse(err)
		return
	}
	to := q.NewReply()
	if err := decode(msg.Data, to); err != nil {
		q.Refuse(err)
		return
	}
	q.ReplyFrom(to)
}

// failure returns the error that a reply is, nil if it is a value.
func failure(msg *nats.Msg) error {
	switch {
	case msg.Header.Get("Status") == "503":
		return fmt.Errorf("%w: %w", actor.ErrNoReply, ErrUnreachable)
	case len(msg.Header[errorHeader]) > 0:
		return &RemoteError{msg.Header.Get(errorHeader)}
	}
	return nil
}
