package natsactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const endHeader = "Braid-End"

// lifeSubject is where a server of a subject gives signs of life.
func lifeSubject(subject string) string { return "_braid.life." + subject }

// Watch calls tell once, on a goroutine: with the end of the actor that is served at subject, which is nil or a RemoteError; or with
// ErrUnreachable, if nobody serves it now or there was no sign of life for lease. That may be false: the actor may go on where it cannot be
// reached. lease is to be several times the Beat of the server. When ctx is done first, tell is not called.
//
// An actor that watches sends to itself in tell:
//
//	natsactor.Watch(ctx, nc, subject, lease, func(err error) { self.Ref().Send(Down{err}) })
func Watch(ctx context.Context, nc *nats.Conn, subject string, lease time.Duration, tell func(err error)) error {
	signs := make(chan *nats.Msg, 16)
	sub, err := nc.ChanSubscribe(lifeSubject(subject), signs)
	if err != nil {
		return fmt.Errorf("natsactor: %w", err)
	}
	if err := nc.Flush(); err != nil { // no end is missed from here on
		_ = sub.Unsubscribe()
		return fmt.Errorf("natsactor: %w", err)
	}
	go func() {
		defer func() { _ = sub.Unsubscribe() }()
		if err, ended := watch(ctx, nc, subject, lease, signs); ended {
			tell(err)
		}
	}()
	return nil
}

func watch(ctx context.Context, nc *nats.Conn, subject string, lease time.Duration, signs <-chan *nats.Msg) (end error, ended bool) {
	asking, cancel := context.WithTimeout(ctx, lease)
	_, err := nc.RequestWithContext(asking, lifeSubject(subject)+".ask", nil)
	cancel()
	switch {
	case ctx.Err() != nil:
		return nil, false
	case errors.Is(err, nats.ErrNoResponders) && len(signs) == 0, errors.Is(err, nats.ErrConnectionClosed):
		return ErrUnreachable, true
	}
	timer := time.NewTimer(lease)
	defer timer.Stop()
	for {
		select {
		case msg, ok := <-signs:
			switch {
			case !ok:
				return ErrUnreachable, true
			case msg.Header.Get(endHeader) == "":
				timer.Reset(lease)
			case len(msg.Header[errorHeader]) > 0:
				return &RemoteError{msg.Header.Get(errorHeader)}, true
			default:
				return nil, true
			}
		case <-timer.C:
			return ErrUnreachable, true
		case <-ctx.Done():
			return nil, false
		}
	}
}
