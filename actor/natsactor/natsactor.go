// Package natsactor connects actors in different processes through NATS. The Ref of an actor in another process takes a Send and an Ask
// like any other Ref.
//
// [Serve] delivers the messages on a NATS subject to an actor, and [Dial] returns a Ref that publishes to a subject. A [Codec] encodes
// the messages. An Ask becomes a NATS request, and fails with ErrUnreachable at once if nobody serves the subject.
//
// # Promises
//
// Delivery is at most once. Messages that are sent through one Ref from Dial arrive in the order in which they were sent. If Send
// returns nil, only the local actor that publishes has accepted the message. Losses are reported. DialOptions has hooks for messages
// that were not published, and for messages that were in transit when the connection broke. Options.OnLost reports messages that
// arrived but were not delivered. [Server.Close] loses nothing that NATS has sent to the process, and neither does nats.Conn.Drain. But
// messages that a connection has received are lost, and are not reported, if the connection is closed before its Servers. For stronger
// guarantees, put JetStream in front of Serve, and acknowledge each message in the reaction.
//
// An Ask does not wait for ever. If the actor fails or has ended, the error is a [*RemoteError] that wraps ErrNoReply. If the actor's
// process is gone, the error wraps ErrNoReply and ErrUnreachable, and is returned after DialOptions.Lease at the latest. An error that
// also wraps ErrInDoubt leaves open whether the actor has handled the request, or will handle it. While the connection is broken, an Ask
// fails at once and its request is not sent. If actors in different processes ask each other, so that none can reply, one of the Asks
// fails with ErrCycle.
//
// A Ref from Dial can be used until its connection is closed. A message that cannot be encoded, or that NATS refuses, does not affect
// other messages. While the NATS server is unreachable, the client buffers messages up to nats.ReconnectBufSize and publishes them
// later. Further messages become dead letters. The local actor behind the Ref ends only when it is stopped or killed, or when the
// connection is closed: see nats.MaxReconnects, which is 60 by default. After that, the program must call Dial again with another
// connection.
//
// Stop, Kill, Wait and Done of a Ref from Dial concern this local actor, not the actor in the other process, which cannot be stopped or
// killed from here. A Watch by an actor, and the function [Watch], report the end of the actor in the other process. Link and Spawn do
// not work across processes.
//
// Several processes that serve one subject with the same Options.Queue share its messages. Security, accounts and clusters are
// configured in NATS. Servers publish signs of life on subjects below _braid.life. A process with permission to publish there can end
// the Watch of another process.
package natsactor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
)

// ErrUnreachable is the error of an Ask or a Watch if nobody serves the subject, or if its servers cannot be reached.
var ErrUnreachable = errors.New("natsactor: unreachable")

// ErrCycle is the error of an Ask that would wait for itself, because its actor waits in turn for the actor that asks. The text of the
// error names the subjects. The cycle is found if each of its actors is served, and waits in Ask, not for the future of an AskLater.
//
// If the request arrives after the other Asks, it is refused. If the Asks cross, the servers find the cycle by questions that are sent
// every third of DialOptions.Lease, and none are sent if Lease is negative. The error then also wraps ErrInDoubt, because the actor will
// still handle the request, and if the questions cross too, several of the Asks fail.
//
// An actor that has passed a request on by Send owes no reply to it. But natsactor cannot see that a goroutine of the actor will reply,
// and then reports a cycle where there is none. Such an actor must use AskLater.
var ErrCycle = errors.New("natsactor: actors wait for each other's replies")

// A RemoteError is an error from another process. It has the text of the original error, and wraps the errors that the original
// wrapped, so that errors.Is finds them: those of packages natsactor, actor and context, and those of RegisterError.
type RemoteError struct {
	Text string
	is   []error
}

func (e *RemoteError) Error() string { return e.Text }

// Unwrap returns the wrapped errors.
func (e *RemoteError) Unwrap() []error { return e.is }

// A Codec encodes and decodes messages and replies. Several goroutines may call its methods at the same time. A panic of Decode or
// DecodeReply is an error like others.
type Codec[M any] interface {
	Encode(m M) ([]byte, error)
	Decode(data []byte) (M, error)
	EncodeReply(v any) ([]byte, error)
	DecodeReply(data []byte, to any) error // the second argument is a pointer to a value of the reply's type
}

// Headers of NATS messages. An error is sent as a message with its text as the data.
const (
	errorHeader = "Braid-Error" // the codes of an error, separated by spaces; may be empty
	askHeader   = "Braid-Ask"   // the id of the client, and the token of the request
	endHeader   = "Braid-End"   // the server's id, in its last sign of life
	chainHeader = "Braid-Chain" // the requests that wait for a request, see cycle.go
)

// The codes of the errors that a RemoteError can wrap.
var codes = struct {
	sync.RWMutex
	all []code
}{all: []code{
	{"no-reply", actor.ErrNoReply},
	{"ended", actor.ErrEnded},
	{"stopped", actor.ErrStopped},
	{"full", actor.ErrFull},
	{"timeout", actor.ErrTimeout},
	{"unreachable", ErrUnreachable},
	{"in-doubt", ErrInDoubt},
	{"cycle", ErrCycle},
	{"canceled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
}}

type code struct {
	code string
	err  error
}

// RegisterError gives err a code, under which it goes from one process to the other: if an actor refuses a request with an error that
// wraps err, or ends with such an error, the [*RemoteError] in the other process wraps the error that is registered there with the same
// code. Programs call RegisterError before they call Serve, Dial or Watch, usually in the package of the messages. RegisterError panics
// if the code is empty, has a space or a control character, or belongs to another error.
func RegisterError(name string, err error) {
	if err == nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		panic("natsactor: RegisterError with a nil error, or a code that is empty or not printable ASCII")
	}
	codes.Lock()
	defer codes.Unlock()
	for _, c := range codes.all {
		if c.code == name && c.err != err {
			panic("natsactor: RegisterError with a code that belongs to another error")
		}
	}
	codes.all = append(codes.all, code{name, err})
}

func registered() []code {
	codes.RLock()
	defer codes.RUnlock()
	return codes.all
}

const longestText = 4096 // the maximum length of an error's text in bytes

// errorMsg returns a message that carries err.
func errorMsg(subject string, err error) *nats.Msg {
	var is []string
	for _, c := range registered() {
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

// remoteError returns the error that msg carries, or nil if it carries none.
func remoteError(msg *nats.Msg) error {
	if len(msg.Header[errorHeader]) == 0 {
		return nil
	}
	e := &RemoteError{Text: string(msg.Data)}
	is := strings.Fields(msg.Header.Get(errorHeader))
	for _, c := range registered() {
		if slices.Contains(is, c.code) {
			e.is = append(e.is, c.err)
		}
	}
	return e
}

// nobodyThere reports whether msg is the answer with which NATS says that the subject has no subscriber.
func nobodyThere(msg *nats.Msg) bool { return msg.Header.Get("Status") == "503" && len(msg.Data) == 0 }

// noReply returns an error that wraps ErrNoReply and err, or err itself if it already wraps ErrNoReply.
func noReply(err error) error {
	if errors.Is(err, actor.ErrNoReply) {
		return err
	}
	return fmt.Errorf("%w: %w", actor.ErrNoReply, err)
}

// The servers of a subject use more subjects. lifeSubject is for signs of life and for the actor's end, askSubject is for the question
// whether there is a server, heldSubject is for questions about the requests that a server holds and for probes (see cycle.go), and
// each server has a subject of its own (see Server.hold).
func lifeSubject(subject string) string     { return "_braid.life." + subject }
func askSubject(subject string) string      { return lifeSubject(subject) + ".ask" }
func heldSubject(subject string) string     { return lifeSubject(subject) + ".held" }
func holdSubject(subject, id string) string { return lifeSubject(subject) + ".hold." + id }
