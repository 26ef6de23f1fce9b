// Package natsactor gives actors addresses on NATS: a Ref of an actor in another process is a Ref like any other.
//
// [Serve] lets an actor receive the messages of a subject, and [Dial] returns a Ref that publishes to one. Messages are encoded by
// a [Codec]. An Ask is a request of NATS, and ErrUnreachable says at once that nobody serves the subject.
//
// # Promises
//
// Delivery is at most once. Messages that are sent through one Ref of Dial arrive in their order. A Send that returns nil was accepted
// by the local actor that publishes, and no more. Losses are reported: DialOptions has the hooks for messages that were not published, or
// were on their way when the connection broke, and Options.OnLost the hook for messages that arrived but were not delivered. For
// stronger guarantees, put JetStream in front of Serve and acknowledge in the reaction.
//
// An Ask ends. If the actor fails or has ended, the error is ErrNoReply, as in one process, with a [RemoteError] in it. If the process of
// the actor is gone, the error is ErrNoReply and ErrUnreachable, after DialOptions.Lease at the latest.
//
// A Ref of Dial lives as long as its connection. A message that cannot be encoded, or that NATS does not carry, is refused alone. While
// the server is away the client keeps messages, up to nats.ReconnectBufSize, and publishes them later, but further messages are dead letters. A
// Ref ends only when it is stopped, or killed, or when the connection is closed: see nats.MaxReconnects, which is 60 by default. A program
// that holds the Ref of a closed connection dials again, with another connection.
//
// Several processes that serve one subject with one Options.Queue share its messages. Security, accounts and clusters are the business of NATS.
// Signs of life use the subjects below _braid.life: a process that may publish there can end the Watch of others. There is no Link and
// no Spawn across processes.
package natsactor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
)

// ErrUnreachable is the error of an Ask, and of a Watch, of a subject that nobody serves or that cannot be reached.
var ErrUnreachable = errors.New("natsactor: unreachable")

// A RemoteError is an error that came from another process. It carries the text, and says which errors of package actor or
// context it is, so that errors.Is finds them.
type RemoteError struct {
	Text string
	is   []error
}

func (e *RemoteError) Error() string { return e.Text }

// Unwrap returns the errors that the error was.
func (e *RemoteError) Unwrap() []error { return e.is }

// A Codec turns messages and replies into bytes and back. Its methods may be called from several goroutines.
type Codec[M any] interface {
	Encode(m M) ([]byte, error)
	Decode(data []byte) (M, error)
	EncodeReply(v any) ([]byte, error)
	DecodeReply(data []byte, to any) error // the type of to is a pointer to the reply's type
}

// Headers of messages. The text of an error is the data of its message.
const (
	errorHeader = "Braid-Error" // the codes of an error, maybe none
	askHeader   = "Braid-Ask"   // a request's sender id, and a token
	endHeader   = "Braid-End"   // the server's id, in its last sign of life
)

// The codes of the errors that stay themselves across processes.
var codes = []struct {
	code string
	err  error
}{
	{"no-reply", actor.ErrNoReply},
	{"ended", actor.ErrEnded},
	{"stopped", actor.ErrStopped},
	{"full", actor.ErrFull},
	{"unreachable", ErrUnreachable},
	{"canceled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
}

const longestText = 4096 // bytes of the text of an error

// errorMsg returns err as a message.
func errorMsg(subject string, err error) *nats.Msg {
	var is []string
	for _, c := range codes {
		if errors.Is(err, c.err) {
			is = append(is, c.code)
		}
	}
	text := err.Error()
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "")
	}
	return &nats.Msg{Subject: subject, Header: nats.Header{errorHeader: {strings.Join(is, " ")}}, Data: []byte(text)}
}

// remoteError returns the error that a message is, nil if it is none.
func remoteError(msg *nats.Msg) error {
	if len(msg.Header[errorHeader]) == 0 {
		return nil
	}
	e := &RemoteError{Text: string(msg.Data)}
	is := strings.Fields(msg.Header.Get(errorHeader))
	for _, c := range codes {
		if slices.Contains(is, c.code) {
			e.is = append(e.is, c.err)
		}
	}
	return e
}

// nobodyThere reports whether a message is the answer of NATS that nobody has subscribed.
func nobodyThere(msg *nats.Msg) bool { return msg.Header.Get("Status") == "503" && len(msg.Data) == 0 }

// noReply returns err as the error of an Ask that gets no reply.
func noReply(err error) error {
	if errors.Is(err, actor.ErrNoReply) {
		return err
	}
	return fmt.Errorf("%w: %w", actor.ErrNoReply, err)
}

// The subjects of the signs of life of a subject's servers: for beats and ends, for the question whether there is a server, and for the
// question which requests are held.
func lifeSubject(subject string) string { return "_braid.life." + subject }
func askSubject(subject string) string  { return lifeSubject(subject) + ".ask" }
func heldSubject(subject string) string { return lifeSubject(subject) + ".held" }
