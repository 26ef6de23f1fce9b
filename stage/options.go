package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// NoQueue is the value of Options.Queue for a queue of length zero.
const NoQueue = -1

// Options configures a stage. The zero value allows one task in progress and one in the queue.
type Options struct {
	// Width is the maximum number of tasks in progress; zero means 1, or the width of Pool if Pool is set. Queue is the maximum
	// number of waiting tasks; zero means Width. A task is accepted while fewer than Width plus Queue tasks are waiting, in progress
	// or delayed.
	Width, Queue int

	// Reject makes Submit, Do and Begin fail with ErrFull when the queue is full. Without Reject, they suspend the caller until there is
	// room. Between the stages of a Pipe, workers always wait for room.
	Reject bool

	// Delay sheds tasks that wait too long. The queue is bad if every task that began in the last 100 ms had waited longer than
	// Delay. While the queue is bad, a task that has waited longer than twice Delay fails with ErrLate instead of beginning. For 100
	// ms after a bad interval, the queue is judged over intervals of length Delay instead of 100 ms. Zero disables shedding.
	Delay time.Duration

	// LIFO makes the stage begin the youngest task first.
	LIFO bool

	// On is the scheduler on which the handlers run; nil means plain goroutines. Pool, if not nil, is a pool shared with other
	// stages. The handlers then run on the pool's scheduler, and On is ignored.
	On   suspend.Spawner
	Pool *Pool

	// Limit adjusts the width; nil means that the width is fixed. Each stage needs its own Limiter.
	Limit Limiter

	// Batch is the maximum number of tasks in one call of the function given to NewBatch; zero means 64. Gather is how long a batch
	// that is not full waits for more tasks, measured from the acceptance of its first task by the scheduler's clock. Zero means
	// that a batch does not wait. Close and Shutdown end the wait.
	Batch  int
	Gather time.Duration

	// Rate is the maximum number of handlers that begin per second; zero means no limit. Each try counts, and a batch counts once.
	// Tasks wait in the queue until they may begin. After a pause, up to Burst handlers begin at once. A Burst of zero means the
	// number that Rate allows in 10 ms, and at least one.
	Rate  float64
	Burst int

	// Retry is called after each failure of a task's handler; the argument try is the number of failures so far. If Retry returns
	// true, the stage calls the handler again after the returned delay. During the delay the task keeps its room in the stage, so
	// that retries cannot exceed the bound.
	Retry func(err error, try int) (after time.Duration, again bool)

	// RetryBudget limits the retries to a fraction of the tasks; nil means no limit. Several stages may share it. If Retry returns true but
	// the budget is used up, the task fails with its error. A RetryBudget without Retry panics.
	RetryBudget *RetryBudget

	// OnPanic is called with the value and the stack of a panic in a handler. The task then fails with an error that wraps a
	// *suspend.PanicError. If OnPanic is nil, the panic continues in the worker: on plain goroutines, it ends the process.
	// After a runtime.Goexit, or a panic that continues, the task fails with an error that is suspend.ErrAbandoned.
	OnPanic func(value any, stack []byte)
}

// The errors of this package. A stage prefixes them with its name; use errors.Is to match them.
var (
	ErrOverload  = errors.New("stage: overload")
	ErrFull      = fmt.Errorf("%w: queue full", ErrOverload)                                 // the task was not accepted
	ErrLate      = fmt.Errorf("%w: waited too long", ErrOverload)                            // the task was accepted, and later shed
	ErrDisplaced = fmt.Errorf("%w: a task of a higher priority took its place", ErrOverload) // the task was accepted, and later displaced
	ErrClosed    = outcome.Named("stage: closed", suspend.ErrClosed)                         // the stage was closed before the task was accepted, or has given the task up
	ErrInput     = errors.New("stage: the input failed")                                     // the sequence of an Each has failed, and not a task

	// ErrCycle is the error of a wait that was ended because handlers wait for each other in a cycle. The message names the stages
	// of the cycle. Only Dos and waits for room are examined. Waits in Each are not examined, nor are waits for children handed in
	// by Begin, Submit or a cancelled Do.
	ErrCycle = errors.New("stage: stages wait for each other in a cycle of Do")
)

var (
	errEnded     = outcome.Named("stage: the task of this context has ended", suspend.ErrEnded)
	errAbandoned = outcome.Named("stage: a handler did not return", suspend.ErrAbandoned)
)

// A stageError is an error with the name of a stage. Each stage allocates its stageErrors once, so that a rejection does not
// allocate.
type stageError struct {
	stage string
	error
}

func (e *stageError) Error() string { return e.stage + ": " + e.error.Error() }
func (e *stageError) Unwrap() error { return e.error }

type stageErrors struct{ full, late, displaced, closed error }

// A Limiter adjusts the width of a stage. Update is called with the figures since the previous call, and returns the new width.
// Calls do not overlap. Workers and callers of Do make the calls, with no lock held. The figures cover at least 5 ms and at least 10
// completions.
//
// If Update returns s.Width, the width stays as it is, even if a SetWidth has changed it during the Update.
//
// A Limiter may also have a method Reason() string, as that of Climb has. It is called after each Update that changes the width, and Stats has its
// result.
type Limiter interface{ Update(s Sample) (width int) }

// A Sample has the figures of the window between two calls of Update.
type Sample struct {
	Width    int
	Busy     int // handlers in progress at the end of the window
	MinQueue int // the smallest number of waiting tasks
	Done     int // handlers that returned
	Failed   int // of these, handlers that returned an error
	Dropped  int // tasks that failed with an ErrOverload
	Refused  int // tasks that were rejected, shed by Delay, or displaced
	Elapsed  time.Duration
	Service  time.Duration // the mean running time of a handler
}

// The type panicked marks the error of a task whose own handler has panicked.
type panicked struct{ suspend.PanicError }

func (e *panicked) Error() string { return "stage: a handler: " + e.PanicError.Error() }

func (e *panicked) Unwrap() error { return &e.PanicError }
