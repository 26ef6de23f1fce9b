// Package fetch batches requests without futures, thunks or timers: a fetch looks like a call, and all fetches that wait at the same
// time go out together.
//
//	var users = fetch.ByMap("users", func(ctx context.Context, ids []int) (map[int]User, error) { … })
//
//	err := fetch.Run(ctx, func(ctx context.Context) error {
//		names, err := fetch.Map(ctx, posts, func(ctx context.Context, p Post) (string, error) {
//			u, err := users.Get(ctx, p.Author) // suspends this task; all tasks ask in one batch
//			return u.Name, err
//		})
//		…
//	})
//
// A Run runs all tasks that can run. When none can, all pending requests go out: a round, of one batch per source. When all
// batches of the round are back, the tasks go on. So the number of rounds is the depth of the dependencies, and the load of
// the machine does not change it.
//
// Concurrency is a property of combinators: [Map], [Two], [Three], [Together]. Two statements one after another are two
// rounds, since Go gives a library no way to see that they are independent. A combinator returns the same as the sequential
// program: the results in order, or the error of the first item in order that fails.
//
// A session remembers every answer, an error too, so each key is asked for once. A Run makes a session, unless its
// context has one already. [Open] opens a session for goroutines that are no tasks of a Run.
//
// A query that returns everything together is better where one can be written. A dataloader with goroutines is as good where its wait
// does not matter; FETCH.md is the way from one to the other.
//
// The idea and the law come from Haxl: Marlow, Brandy, Coens, Purdy, There is no fork: an abstraction for efficient,
// concurrent, and concise data access (ICFP 2014).
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
	ErrNotFound    = errors.New("fetch: not found")                                          // the source has no answer to this key
	ErrNoSession   = errors.New("fetch: the context has no session: use Run or Open")        // a Get outside returns it
	ErrEnded       = outcome.Named("fetch: the session has ended", suspend.ErrEnded)         // a Get after the end returns it
	ErrInSource    = errors.New("fetch: a source must not fetch: use a Memo")                // a round would wait for itself
	ErrNotRecorded = errors.New("fetch: not recorded")                                       // the Recording has no answer to this key
	ErrAbandoned   = outcome.Named("fetch: the source did not return", suspend.ErrAbandoned) // it has called runtime.Goexit
)

// An Error is the failure of one key.
type Error struct {
	Source string
	Key    any
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %v: %v", e.Source, e.Key, e.Err) }

// Unwrap returns the source's own error.
func (e *Error) Unwrap() error { return e.Err }

// A Policy says when requests go out.
type Policy uint8

const (
	Rounds Policy = iota // when nothing is runnable and the last round is over
	Eager                // when nothing is runnable
)

// Options are the choices of a Run or of a session. The zero value is the default.
type Options struct {
	// Policy is Rounds or Eager. With Rounds the answers of a round are handed out together, in the order of asking. Eager
	// hands out the answers of a batch when the batch is back: fewer tasks wait for a slow source, and batches are smaller and more.
	Policy Policy

	// On is where the tasks of a Run run, in parallel if On does that. Nil means the calling goroutine: the tasks take
	// turns there, so that two runs of the same program are the same in all that can be observed.
	On suspend.Spawner

	// What follows belongs to the session. A Run in a session that exists must not set it.

	// Requests of goroutines that are no tasks go out when others have had this many turns; 0: 10; negative: any number.
	Settle int
	// They go out after this time at the latest, since on a machine that computes a turn takes long; 0: 300 µs; negative: any time.
	// While more requests come, the time begins again, up to four times.
	SettleWithin time.Duration

	Trace   bool                                                                      // keep what Session.Trace returns
	Skip    func(function string) bool                                                // whether the trace passes over the lines of a function, as package.name: of a helper around Get
	Replay  *Recording                                                                // answers come from it, and from nowhere else
	Use     []Override                                                                // sources and effects replaced in this session, for tests
	OnBatch func(ctx context.Context, b BatchInfo) (context.Context, func(err error)) // around each batch: spans, metrics; a panic is ErrAbandoned
}

// SourceOptions are the choices of a source. The zero value is the default. Of several, each sets what it has.
type SourceOptions struct {
	MaxBatch int // a batch has at most this many keys, and more keys are more batches of the same round; 0: any number
	MaxOpen  int // a session has at most this many batches open, and more batches wait, in the order of asking; 0: any number
	Mode     Mode

	// No answer is remembered: tasks that wait for a key at the same time share its answer, and the next Get makes a new request. It is for
	// what changes while a session goes on. The answers are in no Recording.
	Fresh bool
}

// A Mode says when load is called, and where.
type Mode uint8

const (
	Batched   Mode = iota // load gets a batch of a round, on a goroutine
	Inline                // the round itself calls load with a batch: load reads memory and must not suspend; its Goexit ends the caller of Run, in the end
	Immediate             // load gets each key at once, on a goroutine
	Direct                // the first Get of a key calls load at once, unless MaxOpen makes it wait
)

// An Override is a source or an Effect that is replaced in a session, see Options.Use. Of two for one source the last counts.
type Override struct {
	of   any // the *Source
	load any
}

// A BatchInfo says what batch it is.
type BatchInfo struct {
	Source string
	Keys   int
	Round  int // 0: it is of no round
}

// A Recording is all the answers of a session, of each source by its name. It is JSON: marshal it to keep it.
type Recording struct {
	Sources map[string][]Answer `json:"sources"`
}

// An Answer is the answer to one key, or the result of one Effect: a value, or else an error or a panic. Of the Effects with equal keys
// the first is before the second.
type Answer struct {
	Key      json.RawMessage `json:"key"`
	Value    json.RawMessage `json:"value,omitempty"`
	NotFound bool            `json:"notFound,omitempty"`
	Error    string          `json:"error,omitempty"` // the text of the error or of the panic's value
	Panic    bool            `json:"panic,omitempty"`
}

// Stats counts the work of a session so far.
type Stats struct {
	Rounds  int // dispatches that sent something
	Batches int // calls of sources
	Open    int // batches that have not returned
	Keys    int // keys of the batches that sources were called with
	Gets    int // keys that were asked for
	Shared  int // Gets that made no request: another had made it
	Dropped int // requests that were never sent, since all waiters gave up
	Errors  int // keys that failed
}

func (o *Options) ofSession() bool {
	return o.Settle != 0 || o.SettleWithin != 0 || o.Skip != nil || o.Trace || o.Replay != nil || o.Use != nil || o.OnBatch != nil
}
