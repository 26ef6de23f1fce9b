package fetch

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/idle"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Everything that a session remembers, from the outside to the inside. The guard of the session guards all of it, unless a comment
// says otherwise.

// A Session is what answers are remembered in: the extent of one request of a server, as a rule. Its methods may be called
// from any goroutine.
type Session struct {
	guard    suspend.Guard // guards the fields below, and the session's tables, drivers and requests
	opts     Options
	ctx      context.Context // made the session; batches have its values
	tables   []*table        // one for each Source and Effect, in the order in which they were made
	more     map[any]*table  // finds a table by its Source where the first few are not enough
	few      [2]*table
	drivers  dlist.List[*driver] // one for each Run that has not ended
	settled  driver              // serves goroutines that are no tasks of a Run
	stats    Stats
	made     int // requests that a Get has made
	open     int // batches
	ended    bool
	closers  []suspend.Resumer[struct{}]
	tracer   *tracer     // a nil tracer means no trace
	recorded recorded    // a nil recorded means no replay
	memos    map[any]any // maps a *Memo to its map of *memoized
	thunks   []*thunk    // nobody has started them
}

// A driver collects the requests of one Run, or of the goroutines that are in none, and sends them when its tasks are quiescent:
// when none of them is runnable. There are three kinds of quiescence. Ordered: the scheduler of the Run is idle. Counted: all tasks
// of the group wait. Settled: other goroutines had their turns, see settle.go.
//
//	quiet   -G> armed    idle is going to be called
//	armed   -I> sending  the contexts of the waiters are looked at once more, without the guard
//	sending -I> busy     a round goes out
//	sending -I> quiet    all waiters have left; or the driver is Eager, and each batch hands out its own answers
//	busy    -T> quiet    or armed, if requests are pending by then
//
// Invariant: while sending or busy, nothing else is sent.
// Debt: the end of these states arms the driver again, if requests are pending.
type driver struct {
	node     dlist.Node[*driver] // among the session's
	s        *Session
	on       suspend.Spawner // runs its tasks; nil for goroutines that are no tasks
	policy   Policy
	ordered  bool        // its tasks take turns on one goroutine
	group    *idle.Group // counted
	settled  bool        // it serves goroutines that are no tasks of a Run
	settling *settling   // is going to call idle; nil: none
	waiters  int         // counts all waiters so far
	state    driverState
	reads    dlist.List[*request] // pending, in the order of asking
	writes   dlist.List[*request] // requests of Effects
	batches  dlist.List[*batch]   // open, or to be opened

	body  func(ctx context.Context) error // belongs to its Run
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

// A round is a number of requests whose answers are handed out together. With Eager it is a batch.
type round struct {
	d        *driver
	number   int                  // 0: it is of no round, as the source is Immediate
	requests dlist.List[*request] // queued in the order of the Gets
	open     int                  // batches
	holds    bool                 // d sends nothing until it is over
}

// A batch is one call of a source, and its requests.
//
//	queued   MaxOpen batches of the source run; a batch that loses its last waiter here is dropped as a whole
//	started  it runs, or is about to
//	called   the source is being called, or was
//
// Invariant: every batch comes to overLocked once, called or not. Otherwise its Run would wait for it for ever.
type batch struct {
	node     dlist.Node[*batch] // among the driver's
	t        *table
	d        *driver
	round    *round
	requests []*request          // stay in the order of the Gets
	one      [1]*request         // room for them
	ctx      cancelctx.Following // load gets it
	frame    frame               // around ctx
	needed   int                 // requests that have waiters

	started, called, cancelled bool
	returned                   bool // the call, if there was one
	kept                       bool // only the end of the session cancels it, once it has started

	mu       atomicx.Mutex // guards the answers while the source is called
	over     bool          // no answer changes any more
	from, to time.Duration // the trace shows the time of the call
	then     *batch        // the next that can begin
}

// A request is one key of a source in a session, and later the answer.
//
//	pending -I> open    its driver sends it
//	pending -G> gone    the last waiter leaves, or the session ends; it was never sent
//	open    -B> back    its batch has returned, and tasks of other drivers get the answer
//	open    -G> gone    the last waiter of its batch leaves
//	back    -T> done    the round is handed out
//
// Invariant: a waiter in waiters is suspended, or about to suspend, or about to leave. A pending request has one.
type request struct {
	self        any // the *entry that this is the head of
	t           *table
	d           *driver              // sends it
	b           *batch               // is set when it is sent
	node        dlist.Node[*request] // links it to the pending requests of d, and then to its round
	waiters     dlist.List[*waiter]
	first, last *mark // the Gets that waited for it, for the trace
	err         error // the answer's error; a *thrown if the source has panicked
	state       state
	set         bool // the source has answered
	passing     bool // the answer is not remembered
}

type state uint8

const (
	pending state = iota
	open
	back
	done
	gone
)

// A table has the requests of a session for one source.
type table struct {
	s       *Session
	of      any // the *Source
	name    string
	opts    SourceOptions
	write   bool       // an Effect shares nothing, and only the end of the session cancels its batch once it has started
	filling *batch     // takes the next request that is sent
	open    int        // batches that have started
	queue   []*batch   // wait until open is less than MaxOpen
	did     []*request // the effects, in the order in which they were sent
	typed              // the *tableOf that this is the head of
}

// typed has the methods of a table that depend on the types of its keys and values.
type typed interface {
	call(ctx context.Context, b *batch) error // the source
	forgetLocked(q *request)
	rememberedLocked() []*request
	pair(q *request) (key, value any)
}

// A waiter is a task that waits for the requests of one Get, or of one All.
type waiter struct {
	d      *driver         // serves the task
	ctx    context.Context // without the frame: suspend recognizes it then, and a wait is quicker
	r      suspend.Resumer[struct{}]
	links  []link
	left   int      // links that are in a request's list
	prompt bool     // the end of ctx ends the wait at once, or ctx has no end
	duty   *round   // the task has to hand it out
	stop   []*batch // the task has to cancel them
	mark   *mark    // the call, for the trace; nil: no trace
}

// A link is the place of a waiter in the list of a request.
type link struct {
	dlist.Node[*waiter]
	q *request
}

// An entry is a request and its value, which the batch writes while the request is open, and which does not change afterwards.
type entry[K comparable, V any] struct {
	request
	key K
	v   V
}

// A thrown is the value of a panic.
type thrown struct{ value any }

func (t *thrown) Error() string { return fmt.Sprint(t.value) }

// throw makes the answer a panic.
func (q *request) throw(value any) { q.set, q.err = true, &thrown{value} }

func (q *request) panicked() bool {
	_, is := q.err.(*thrown)
	return is
}

// A frame is the context that tasks get: what fetch has to find in it.
type frame struct {
	context.Context
	s        *Session // a frame with only a label has none
	d        *driver  // serves the Run that it was made for; nil if there is none
	askers   int      // items of the combinator that it was made for: so many may ask
	inSource bool     // it is a source's
	trail    *trail   // a session without a trace has none
	label    string
}

type frameKey struct{}

// frameOf returns the innermost frame of ctx, nil if there is none.
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

// check is the first thing that every operation does.
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

// A tracer has the batches of a session. It is guarded by the session's guard, like the marks. A nil tracer notes nothing.
type tracer struct {
	name  string
	begun time.Time
	sent  []*batch // sorted by the time at which they were sent
}

// A mark is one Get, of one key: the task and the place in the code.
type mark struct {
	label   string
	task    *trail
	because *request // the task had its answer last
	at      place
	next    *mark     // the next mark of the same request
	wide    []uintptr // like at, if functions may be passed over; else nil
	skip    func(function string) bool
	listed  bool
}

// A place is where a Get was called: the innermost frames. The caller's frame is among them, or a combinator's.
type place [3]uintptr

// A wide place is where a combinator was called, which may consist of others.
type widePlace [6]uintptr

// A trail is the past of a task. It is the task's own.
type trail struct {
	last  atomicx.Pointer[request] // goroutines that are no tasks share a trail
	group *widePlace               // the combinator whose item the task is; nil without one
}

// A settling ends with the first of two: other goroutines have had their turns, or the time is over.
type settling struct {
	d         *driver
	limit     *limit
	seen      int // waiters, when the time began
	prolonged int
}

// A thunk is a function that Later has returned.
type thunk struct {
	force func() // runs the function, or waits for it
	taken bool   // somebody has started it; guarded by the session's guard
}

// A recorded is a Recording to be looked up in: the answers of each source, by what its keys are in JSON.
type recorded map[string]map[string][]Answer
