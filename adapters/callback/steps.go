package callback

import (
	"bytes"
	"errors"
	"runtime"
	"time"

	"github.com/braidgo/braid/suspend"
)

// ErrThread is returned by Close if the Loop has abandoned tasks, because they belong to a locked thread whose executor has
// stopped. To avoid this error, close the Loop before its executor stops.
var ErrThread = errors.New("callback: the executor ended before tasks that need its thread")

// When the Loop wakes up, or at the end of a step, it requests one step by setting l.asked. The executor runs the step, or
// a goroutine does if the Loop has abandoned the executor. Either must first claim the request by clearing l.asked, so that
// a late call by the executor either runs the requested step or does nothing.
//
// The order of accesses matters: the method wake stores l.asked and then loads l.abandoned, whereas the method Abandon stores
// l.abandoned and then loads l.asked. Therefore at least one of the two methods starts the goroutine.

// wake requests a step. It obeys the contract of the method Unpark of suspend.Task.
func (l *Loop) wake() {
	l.asked.Store(true)
	switch {
	case l.abandoned.Load():
		l.start(l.ownStep)
	case l.direct:
		l.handOver()
	default:
		l.start(l.handOver)
	}
}

func (l *Loop) handOver() {
	if err := l.exec.Execute(l.executorStep); err != nil {
		l.start(func() { l.insist(err) })
	}
}

// insist submits a step again after the executor has refused it with err. It stops when the executor accepts the step, or
// when the Loop abandons the executor.
func (l *Loop) insist(err error) {
	const longest = time.Second
	for pause := time.Millisecond; err != nil; pause = min(2*pause, longest) {
		if errors.Is(err, suspend.ErrClosed) || l.closed.Load() && pause == longest {
			l.Abandon()
			return
		}
		time.Sleep(pause)
		if l.abandoned.Load() {
			return
		}
		err = l.exec.Execute(l.executorStep)
	}
}

// Abandon tells the Loop that its executor has stopped for good, and runs no more steps. Call it if the executor drops steps
// without an error, so that Close would wait for ever; an executor that refuses a step with suspend.ErrClosed is abandoned without
// a call. From now on goroutines run the tasks and callbacks of the Loop, still one after another. If they belong to the
// executor's locked thread, they are lost, the Loop is closed, and Close returns ErrThread. Abandon does not close the Loop
// otherwise: call Close afterwards, which waits for the tasks.
//
// Do not call Abandon while the executor is alive, because its tasks would then run in parallel with the executor's other work, or
// be lost. A step that the executor has accepted and runs later does nothing. Abandon does not wait, and a second call does
// nothing. It may be called anywhere.
func (l *Loop) Abandon() {
	l.abandoned.Store(true)
	if l.asked.Load() {
		l.start(l.ownStep)
	}
}

func (l *Loop) claimStep() bool { return l.asked.CompareAndSwap(true, false) }

// executorStep is called by the executor, and runs the step that was requested. If the Loop has abandoned the executor, a
// goroutine runs the step instead, because goroutines may have created coroutines that cannot run on a locked thread. If
// the coroutines belong to the executor's own locked thread, the executor runs the step nevertheless.
func (l *Loop) executorStep() {
	if !l.claimStep() {
		return
	}
	if l.abandoned.Load() && !l.locked {
		l.wake()
		return
	}
	if !l.looked {
		l.looked, l.locked = true, lockedToThread()
	}
	l.run()
}

// ownStep runs the requested step on a goroutine of the Loop.
func (l *Loop) ownStep() {
	if !l.claimStep() {
		return
	}
	if l.locked {
		l.loseTasks()
		return
	}
	l.looked = true // new coroutines will belong to no thread
	l.run()
}

// loseTasks ends a Loop whose thread has ended. Idle coroutines are not stopped, because they can stop only on their thread.
func (l *Loop) loseTasks() {
	l.core.Close() // a later task would never run
	l.stalls.Stop()
	if l.core.Done() {
		l.gone.Fill(struct{}{})
	} else {
		l.gone.Fail(ErrThread)
	}
}

func (l *Loop) runNext() {
	if it := l.core.Next(); it != nil {
		l.core.Run(it)
		l.stalls.End()
	}
	l.after()
}

// after is called at the end of each step. It ends the Loop, requests another step, or puts the Loop to sleep.
func (l *Loop) after() {
	if l.core.Done() && l.core.Empty() {
		l.core.Release()
		l.stalls.Stop()
		l.gone.Fill(struct{}{})
		return
	}
	if l.core.Empty() && l.core.Sleep() {
		// If the Loop was closed in the meantime, the last step must still run, but another goroutine may have requested it
		// already.
		if !l.core.Done() || !l.core.Rouse() {
			return
		}
	}
	l.wake()
}

// lockedToThread reports whether the calling goroutine is locked to its thread.
func lockedToThread() bool {
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	return bytes.Contains(head, []byte("locked to thread"))
}
