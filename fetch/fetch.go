// Package fetch batches requests without futures, thunks or timers: a fetch looks like a function call, and all fetches that
// wait at the same time are sent together.
//
//	var users = fetch.ByMap("users", func(ctx context.Context, ids []int) (map[int]User, error) { … }, fetch.SourceOptions{})
//
//	err := fetch.Run(ctx, func(ctx context.Context) error {
//		names, err := fetch.Map(ctx, posts, func(ctx context.Context, p Post) (string, error) {
//			u, err := users.Get(ctx, p.Author) // suspends this task; the keys of all tasks make one batch
//			return u.Name, err
//		})
//		…
//	}, fetch.Options{})
//
// A Run runs its tasks until none of them is runnable. Then it sends all pending requests as a round, with one batch per
// source. The tasks resume when all batches of the round have returned. The number of rounds is therefore the depth of the
// dependencies and does not depend on the load of the machine.
//
// The combinators [Map], [Two], [Three] and [Together] make fetches concurrent. Two fetches in consecutive statements take two
// rounds, because a Go library cannot see that they are independent. A combinator returns what the sequential program would
// return: the results in order, or the error of the first item in order that fails.
//
// A session remembers every answer, including errors, so that each key is requested once. A Run makes a session unless its
// context already has a session. [Open] opens a session for goroutines that are not tasks of a Run.
//
// A key must be equal to itself. Every method of a Source, an Effect or a Memo panics if its key is NaN or contains a NaN, because
// a session cannot find such a key again.
//
// If a single query can return everything, prefer that query. A dataloader with goroutines is just as good if its delay does
// not matter; fetch/README.md shows how to migrate from a dataloader to this package.
//
// The idea, and the law that a combinator equals its sequential program, come from Haxl: Marlow, Brandy, Coens, Purdy, There is
// no fork: an abstraction for efficient, concurrent, and concise data access (ICFP 2014).
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

var (
	ErrNotFound    = errors.New("fetch: not found")                                   // the source has no answer for this key
	ErrNoSession   = errors.New("fetch: the context has no session: use Run or Open") // the Get was called outside of any session
	ErrInSource    = errors.New("fetch: a source must not fetch: use a Memo")         // a Get in a source would wait for itself
	ErrNotRecorded = errors.New("fetch: not recorded")                                // the Recording has no answer for this key
)

var (
	errEnded     = outcome.Named("fetch: the session has ended", suspend.ErrEnded, suspend.ErrClosed)
	errAbandoned = outcome.Named("fetch: the source did not return", suspend.ErrAbandoned) // the source called runtime.Goexit
)

// errSourceClosed is the error of a request to a Shared source that has been closed.
var errSourceClosed = outcome.Named("fetch: the source is closed", errEnded)

// An Error says why the request of one key failed.
type Error struct {
	Source string
	Key    any
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %v: %v", e.Source, e.Key, e.Err) }

// Unwrap returns the source's own error.
func (e *Error) Unwrap() error { return e.Err }

// Options configure a Run or a session. The zero value is the default.
type Options struct {
	// Without Eager, requests are sent when no task is runnable and the previous round is over, and all answers of a round are delivered
	// together, in the order of the Gets. With Eager, requests are sent when no task is runnable, and the answers of each batch are
	// delivered when the batch returns: fewer tasks wait for a slow source, but there are more and smaller batches.
	Eager bool

	// On is the scheduler that runs the tasks of a Run, possibly in parallel. If On is nil, the tasks take turns on the calling
	// goroutine, so that two runs of the same program behave identically.
	On suspend.Spawner

	// The following options belong to the session. A Run inside an existing session must not set them.

	// Settle is the number of turns that other goroutines get before the session sends the requests of goroutines outside a
	// Run. The turns begin again if more requests have arrived, up to 32 times. Zero means 10; if Settle is negative, only
	// SettleWithin counts.
	Settle int
	// SettleWithin limits the time until these requests are sent, because turns are slow on a busy machine. Zero means 300 µs;
	// a negative time means no limit. While more calls begin to wait, the limit starts again, up to four times. Each time is
	// SettleWithin × the number of waiting calls, as long as the sum of all times is at most 32 × SettleWithin and at most 10 ms.
	// When the sum would be more, the remaining times are SettleWithin. So the longest limit is 9.6 ms by default; it is
	// 5 × SettleWithin if this is more than 10 ms.
	SettleWithin time.Duration

	Trace bool // record the batches for Session.Trace
	// Skip reports whether the trace ignores a function, such as a helper around Get. The function's name is package.name.
	Skip   func(function string) bool
	Replay *Recording // the Recording that answers all requests, if set
	Use    []Override // replacements of sources and effects in this session, for tests
	// OnBatch is called before each batch, and the function that it returns is called after the batch, for spans and metrics.
	// The argument err is an error that is suspend.ErrAbandoned if the source panics.
	OnBatch func(ctx context.Context, b BatchInfo) (context.Context, func(err error))
}

// SourceOptions configure a source. The zero value is the default.
type SourceOptions struct {
	MaxBatch int // maximum number of keys in a batch; more keys make more batches in the same round; 0 means no limit
	MaxOpen  int // maximum number of batches that run at once in a session; more batches wait in order; 0 means no limit

	// With Immediate, the load function gets each key at once, without a round. Without it, the function gets batches of a round.
	Immediate bool

	// Without Inline, the load function runs on a separate goroutine, where it may block. With Inline, it runs on the goroutine that
	// sends the round. Inline is for functions that only read memory: such a function must not suspend, and its Goexit eventually ends the
	// caller of Run. With Inline and Immediate, the first Get of a key calls the function itself, unless it must wait because of MaxOpen.
	Inline bool

	// If Fresh is set, no answer is remembered: tasks that wait for a key at the same time share its answer, and the next Get
	// makes a new request. Use Fresh for values that change during a session. Recordings omit the answers of a Fresh source.
	Fresh bool
}

// An Override replaces a source or an Effect in a session, see Options.Use. If a source has several Overrides, the last is
// used.
type Override struct {
	of   any // the *Source that is replaced
	load any
}

// A BatchInfo describes a batch.
type BatchInfo struct {
	Source string
	Keys   int
	Round  int // 0 if the batch belongs to no round
}

// A Recording holds the answers of a session, grouped by source. To store a Recording, marshal it to JSON.
type Recording struct {
	Sources map[string][]Answer `json:"sources"`
}

// An Answer is the answer to one key, or the result of one Effect: a value, an error or a panic. The Answers of Effects with
// equal keys are in the order in which the Effects were sent.
type Answer struct {
	Key      json.RawMessage `json:"key"`
	Value    json.RawMessage `json:"value,omitempty"`
	NotFound bool            `json:"notFound,omitempty"`
	Error    string          `json:"error,omitempty"` // the text of the error or of the panic's value
	Panic    bool            `json:"panic,omitempty"`
}

// Stats counts the work of a session so far.
type Stats struct {
	Rounds  int // rounds that were sent
	Batches int // calls of sources
	Open    int // batches that have not returned
	Keys    int // keys in all calls of sources
	Gets    int // requested keys, including repeated requests
	Shared  int // Gets that used an existing request or answer
	Dropped int // requests that were never sent because all waiters gave up
	Errors  int // keys that failed
}

func (o *Options) ofSession() bool {
	return o.Settle != 0 || o.SettleWithin != 0 || o.Skip != nil || o.Trace || o.Replay != nil || o.Use != nil || o.OnBatch != nil
}
