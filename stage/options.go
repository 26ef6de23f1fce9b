package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Full is the choice of a stage whose queue is full.
type Full uint8

const (
	FullWait   Full = iota // the caller suspends until there is room
	FullReject             // the call fails with ErrFull
)

// NoQueue is the Queue of a stage in which no task waits.
const NoQueue = -1

// Options are the choices that a stage is made with. The zero value means one task in progress and one in the queue.
type Options struct {
	// Width is the largest number of tasks in progress; zero is 1, or the width of Pool. Queue is the number that wait; zero
	// is Width. A task is accepted while fewer than Queue plus Width tasks wait, are in progress or are delayed.
	Width, Queue int

	// Full decides on Submit, Do and Begin when the queue is full. Between the stages of a Pipe it is always FullWait.
	Full Full

	// Delay sheds load by time: once every task of the last 100 ms has waited longer than Delay, a task that has waited longer
	// than twice Delay fails with ErrLate instead of beginning. For 100 ms after such a time, every task of the last Delay is
	// enough to begin again. Zero sheds nothing.
	Delay time.Duration

	// LIFO begins the youngest task first.
	LIFO bool

	// On is the scheduler of the handlers; nil means plain goroutines. Pool, if not nil, is shared with other stages, and On is
	// the pool's.
	On   suspend.Spawner
	Pool *Pool

	// Limit decides on the width; nil keeps it. A Limit belongs to one stage.
	Limit Limiter

	// Batch is the number of tasks that the function of a NewBatch gets at most; zero is 64. Gather is how long a batch that is
	// not full waits for more, from the acceptance of its first task on, by the clock of the scheduler; zero is not at all.
	// Close ends the wait.
	Batch  int
	Gather time.Duration

	// Rate is the number of handlers that begin in a second, at most; zero sets no limit. A batch counts once, and so does each
	// try. Tasks wait in the queue until their turn. After a pause, Burst handlers begin at once; zero means as many as begin
	// in 10 ms, and at least one.
	Rate  float64
	Burst int

	// Retry is called when a handler has failed for the try'th time, from 1 on. If again is true, the task begins again after
	// the delay. Until then it keeps its place in the stage, so that retries do not get round the bound.
	Retry func(err error, try int) (after time.Duration, again bool)

	// OnPanic is called with the value and the stack of a handler that panicked. The task then fails with a *suspend.PanicError. By
	// default the panic goes on in the worker: on goroutines, it ends the process.
	OnPanic func(value any, stack []byte)
}

// The errors of this package. A stage returns errors with its name, which match these with errors.Is.
var (
	ErrOverload  = errors.New("stage: overload")
	ErrFull      = fmt.Errorf("%w: queue full", ErrOverload)                                 // the task was not accepted
	ErrLate      = fmt.Errorf("%w: waited too long", ErrOverload)                            // it was accepted, and shed
	ErrDisplaced = fmt.Errorf("%w: a task of a higher priority took its place", ErrOverload) // it was accepted, and shed
	ErrClosed    = outcome.Named("stage: closed", suspend.ErrClosed)
	ErrEnded     = outcome.Named("stage: the task of this context has ended", suspend.ErrEnded)
	ErrAbandoned = outcome.Named("stage: a handler did not return", suspend.ErrAbandoned)

	// ErrCycle says which stages wait for each other. Such a cycle is made of Dos and of waits for room. No other wait is
	// examined: neither for the children of Begin, Submit and a cancelled Do, nor in Each.
	ErrCycle = errors.New("stage: a cycle of Dos")
)

// A stageError is made once for each stage, so that a rejection allocates nothing.
type stageError struct {
	stage string
	error
}

func (e *stageError) Error() string { return e.stage + ": " + e.error.Error() }
func (e *stageError) Unwrap() error { return e.error }

type stageErrors struct{ full, late, displaced, closed error }

// A Limiter decides on the width of a stage. Update is called with the figures since the call before, or since the width
// changed, and returns the width from now on. Calls do not overlap; workers and callers of Do make them, under no lock. A window
// has at least 10 completions and 5 ms.
type Limiter interface{ Update(s Sample) (width int) }

// A Sample is the figures of a window.
type Sample struct {
	Width    int
	Busy     int // handlers that run at its end
	MinQueue int // the fewest tasks that waited
	Done     int // handlers that returned
	Dropped  int // failed tasks whose error is an ErrOverload
	Elapsed  time.Duration
	Service  time.Duration // the mean of the handlers
}

// panicked is the error of a task whose own handler has panicked.
type panicked struct{ suspend.PanicError }

func (e *panicked) Error() string { return "stage: a handler: " + e.PanicError.Error() }

func (e *panicked) Unwrap() error { return &e.PanicError }
