package fetch

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// This file declares the state of a session, from the outermost type to the innermost. The session's guard protects all of this
// state, unless a comment says otherwise. The records of a trace are in marks.go.

// A Session remembers the answers to requests. A server usually opens one Session for each request that it serves. The methods
// may be called from any goroutine.
type Session struct {
	guard    suspend.Guard // guards all fields below
	opts     Options
	ctx      context.Context // the context of Open or Run; batches inherit its values
	tables   []*table        // one for each Source and Effect, in the order of first use
	more     map[any]*table  // the tables beyond the first few, by their Source
	few      [2]*table
	drivers  dlist.List[*driver] // one for each Run that has not ended
	settled  driver              // serves goroutines outside a Run
	stats    Stats
	made     int // number of requests that Gets have made
	open     int // number of open batches
	ended    bool
	closers  []suspend.Resumer[struct{}]
	tracer   *tracer     // a nil tracer means no trace
	recorded recorded    // a nil recorded means no replay
	memos    map[any]any // maps each *Memo to its map of *memoized
	thunks   []*thunk    // thunks that have not been started
}

// A driver collects the requests of one Run, or of all goroutines outside a Run. A driver sends the requests when its tasks are
// quiescent, that is, when none of the tasks is runnable. An ordered driver is quiescent when the scheduler of its Run is idle.
// A counted driver is quiescent when all tasks of its group wait. The settled driver is quiescent when other goroutines have
// had their turns, see settle.go.
//
//	quiet   -G> armed    idle will be called
//	armed   -I> sending  idle checks the waiters' contexts once more, without the guard
//	sending -I> busy     idle sends a round
//	sending -I> quiet    all waiters have left, or the driver is eager, so that each batch hands out its own answers
//	busy    -T> quiet    the round is over; armed instead if requests are pending
//
// G is a Get, I is the method idle, and T hands out the answers of the round.
//
// Invariant: a driver that is sending or busy sends no other round.
// Debt: the transition out of these states must arm the driver again if requests are pending.
type driver struct {
	node     dlist.Node[*driver] // links the session's drivers
	s        *Session
	on       suspend.Spawner // runs the tasks; nil for goroutines outside a Run
	eager    bool
	ordered  bool        // the tasks take turns on one goroutine
	group    *idle.Group // counts the running tasks of a counted driver
	settled  bool        // the driver serves goroutines outside a Run
	settling *settling   // calls d.idle later; nil if no call is due
	waiters  int         // size of the crowd: goroutines outside a Run that began to wait for a pending request
	state    driverState
	reads    dlist.List[*request] // pending requests of sources, in the order of the Gets
	writes   dlist.List[*request] // pending requests of Effects
	batches  dlist.List[*batch]   // batches that run or wait in a table's queue

	body  func(ctx context.Context) error // the function that Run was called with
	frame frame                           // the body's context
	err   error                           // the body's error
	how   outcome.Outcome                 // the body's outcome
	ended bool
	ender suspend.Resumer[struct{}]
}

type driverState uint8

const (
	quiet driverState = iota
	armed
	sending
	busy
)

// A round is a set of requests whose answers are handed out together. With Eager, each batch is a round.
type round struct {
	d        *driver
	number   int                  // 0 for the only batch of an Immediate source
	requests dlist.List[*request] // sorted in the order of the Gets
	open     int                  // number of open batches
	holds    bool                 // d sends nothing until the round is over
}

// A batch is one call of a source, with its requests.
//
//	queued   waits while MaxOpen batches of the source run; dropped as a whole when its last waiter leaves
//	started  runs, or is about to run
//	called   the source is being called, or has returned
//
// Invariant: overLocked is called once for every batch, even if the source was not called. Without this call, the Run would
// wait for the batch forever.
type batch struct {
	node     dlist.Node[*batch] // links the driver's batches
	t        *table
	d        *driver
	round    *round
	requests []*request          // always in the order of the Gets
	one      [1]*request         // the array behind requests in a batch of one request
	ctx      cancelctx.Following // the context that the source's function receives
	frame    frame               // wraps ctx for the source's function
	needed   int                 // number of requests that have waiters
	caller   int64               // the goroutine that calls the source; 0 before and after the call

	started, called, cancelled bool
	returned                   bool // finish has run
	kept                       bool // once started, only the end of the session cancels the batch

	mu       atomicx.Mutex // guards the answers while the source is called
	over     bool          // the answers are final
	from, to time.Duration // start and end of the call, for the trace
	then     *batch        // the next batch of a list
}

// A request is one key of a source in a session, and later also its answer. -D> is the driver, -G> is a Get, -B> is the batch, and -T> hands out
// the answers of the round.
//
//	pending -D> open    the driver sends the request
//	pending -G> gone    the last waiter leaves, or the session ends, before the request is sent
//	open    -B> back    the batch has returned, and tasks of other drivers get the answer
//	open    -G> gone    the last waiter of the batch leaves
//	back    -T> done    the answers of the round are handed out
//
// Invariant: every waiter in the list is suspended, about to suspend, or about to leave. A pending request has at least one waiter.
type request struct {
	self        any // the *entry that embeds this request
	t           *table
	d           *driver              // the driver that sends the request
	b           *batch               // the batch; set when the request is sent
	node        dlist.Node[*request] // links the pending requests of d, and later the requests of the round
	waiters     dlist.List[*waiter]
	first, last *mark // the list of Gets that waited for the request, for the trace
	err         error // the answer's error; a *thrown if the source panicked
	state       state
	set         bool // the source has answered
	passing     bool // the answer is not remembered
}

type state uint8

const (
	pending state = iota // the driver has not sent it yet
	open                 // in a batch, which runs or is queued
	back                 // answered, for the tasks of other drivers only
	done                 // answered
	gone                 // nobody waits for it, and nobody finds it any more
)

// A table holds a session's requests for one source.
type table struct {
	s       *Session
	of      any // the *Source that the table serves
	name    string
	opts    SourceOptions
	write   bool       // the source is an Effect, whose requests are not shared
	filling *batch     // the batch that takes the next request of a round
	open    int        // number of batches that are running
	queue   []*batch   // batches that wait because MaxOpen batches are running
	did     []*request // the requests of an Effect that were sent, sorted by send time
	typed              // the *tableOf that embeds this table
}

// typed contains the methods of a table that depend on the types of its keys and values.
type typed interface {
	call(ctx context.Context, b *batch) error // calls the source
	forgetLocked(q *request)
	rememberedLocked() []*request
	pair(q *request) (key, value any)
}

// A waiter is a task that waits for the requests of one Get, or of one All.
type waiter struct {
	d      *driver         // the driver of the task
	ctx    context.Context // the context inside the frame; package suspend recognises its type
	r      suspend.Resumer[struct{}]
	links  []link
	left   int      // number of links that are in a request's list
	prompt bool     // the end of ctx ends the wait at once, or ctx never ends
	member bool     // the waiter is counted in the crowd
	duty   *round   // the round whose answers the task must hand out
	stop   []*batch // the batches that the task must cancel
	mark   *mark    // the call, for the trace; nil without a trace
}

// A link is the place of a waiter in the list of a request.
type link struct {
	dlist.Node[*waiter]
	q *request
}

// An entry is a request with its key and its value. The batch writes the value while the request is open; later the value does
// not change.
type entry[K comparable, V any] struct {
	request
	key K
	v   V
}

// A thrown is an error that carries the value of a panic.
type thrown struct{ value any }

func (t *thrown) Error() string { return fmt.Sprint(t.value) }

// throw sets the answer to a panic with this value.
func (q *request) throw(value any) { q.set, q.err = true, &thrown{value} }

func (q *request) panicked() bool {
	_, is := q.err.(*thrown)
	return is
}

// A frame is the context that fetch passes to tasks and sources, with its own state.
type frame struct {
	context.Context
	s        *Session // a frame with only a label has no session
	d        *driver  // the driver of the Run; nil outside a Run
	askers   int      // number of items of the combinator, a size hint for new tables
	inSource bool     // the frame belongs to a source's context
	trail    *trail   // a session without a trace has no trails
	label    string
}

type frameKey struct{}

// frameOf returns the innermost frame of ctx, or nil if there is none.
func frameOf(ctx context.Context) *frame {
	f, ok := ctx.(*frame)
	if !ok {
		f, _ = ctx.Value(frameKey{}).(*frame)
	}
	return f
}

func (f *frame) session() *Session {
	if f == nil {
		return nil
	}
	return f.s
}

// check returns an error if an operation with ctx must fail at once. Every operation that may wait calls check first.
func (f *frame) check(ctx context.Context) error {
	switch {
	case f != nil && f.inSource:
		return ErrInSource
	case f.session() == nil:
		return ErrNoSession
	case ctx.Err() != nil:
		return suspend.Err(ctx)
	}
	return nil
}
