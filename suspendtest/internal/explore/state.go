package explore

import (
	"runtime"
	"time"
)

// A World is one run of a program.
type World struct {
	e         *explorer
	tasks     []*task // the tasks of the program and their helpers
	contexts  []*taskContext
	own       []*ownContext
	current   *task // the running task, or nil
	chosen    *task // the next task, if it has already been chosen
	checks    []func() error
	idle      []func(waiting []string) error
	now       time.Time // the run's clock
	steps     int
	dead      bool // the run has ended, and its suspended tasks are unwound
	spent     int  // the number of accesses since the field dead was set
	redundant bool // the run was given up, because it could only repeat other runs
	failure   string
	trace     []event
}

// A task belongs to the program or is a helper, which cancels a context or calls a function for the program's tasks.
type task struct {
	w       *World
	id      int
	name    string
	f       func()
	ctx     *taskContext
	cancels *taskContext // the context that the task cancels, if it is a canceller; a canceller need not run
	helps   bool         // the task is a helper, which does not suspend
	exits   bool         // the task may call runtime.Goexit
	begun   bool
	ended   bool

	parked   bool
	permit   bool
	spurious int             // the number of spurious returns from Park
	lock     locker          // the lock that the task waits for, or nil
	after    <-chan struct{} // the channel that the task waits for, or nil
	holds    []locker
	starved  map[*task]int // maps each other task that stayed runnable to the Yields since its last step
	worker   *worker
	timer    *task // the timer of the task's Sleep, until the Sleep begins to wait
	early    bool  // the task is the timer of a Sleep that has not begun to wait
	drawn    int   // how many random numbers the task has drawn
	loop     loop
	priority float64 // the task's priority in a random run; 0 before it is drawn

	reducible
}

type locker interface {
	TryLock() bool
	Unlock()
}

// A taskContext is a context that its canceller, a helper task, may cancel. The canceller then calls the registered functions, or starts
// a task for each of them if the context is detached.
type taskContext struct {
	w         *World
	t         *task // the context's task; for a Deadline, the first task that looks at the context
	canceller *task
	own       bool // the context was created by World.Deadline
	reason    error
	detached  bool
	used      bool // a task has looked at the context
	done      chan struct{}
	err       error
	after     []*func()
}

// An ownContext is a context that the program cancels itself.
type ownContext struct {
	w     *World
	done  chan struct{}
	err   error
	after []*func()
}

// An event is an entry of a run's trace, with its task and source line, if any.
type event struct {
	t     *task
	what  string
	where runtime.Frame
}

// A worker is a coroutine that runs one task after another.
type worker struct {
	e     *explorer
	task  *task
	gid   int64
	gone  bool // the worker's goroutine has exited
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}
