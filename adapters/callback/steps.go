package callback

import (
	"bytes"
	"errors"
	"runtime"
	"time"

	"github.com/braidgo/braid/suspend"
)

// ErrThread is the error of a Close that has abandoned tasks: they belong to a locked thread whose executor has ended. Close the Loop
// before its executor ends.
var ErrThread = errors.New("callback: tasks are left that belong to the thread of an executor that has ended")

// The end of a sleep, or the step before, requests one step. The executor runs it. If the executor is given up, a
// goroutine does. Each first claims asked, so a step that an executor still runs, after it was given up, is either the
// requested step or nothing.
//
// Order: wake stores asked and then loads givenUp, giveUp stores givenUp and then loads asked. So one of the two starts
// the goroutine.

// wake obeys Unpark's contract.
func (l *Loop) wake() {
	l.asked.Store(true)
	switch {
	case l.givenUp.Load():
		l.start(l.ownStep)
	case l.direct:
		l.handOver()
	default:
		l.start(l.handOver)
	}
}

func (l *Loop) handOver() {
	if err := l.exec.Execute(l.step); err != nil {
		l.start(func() { l.insist(err) })
	}
}

// insist hands over a step that was refused with err.
func (l *Loop) insist(err error) {
	const longest = time.Second
	for pause := time.Millisecond; err != nil; pause = min(2*pause, longest) {
		if errors.Is(err, suspend.ErrClosed) || l.closed.Load() && pause == longest {
			l.giveUp()
			return
		}
		time.Sleep(pause)
		if l.givenUp.Load() {
			return
		}
		err = l.exec.Execute(l.step)
	}
}

// giveUp makes goroutines run the steps that are left.
func (l *Loop) giveUp() {
	l.givenUp.Store(true)
	if l.asked.Load() {
		l.start(l.ownStep)
	}
}

func (l *Loop) claim() bool { return l.asked.CompareAndSwap(true, false) }

// step runs on the executor. Once the executor is given up, goroutines may have made coroutines, which cannot run on a
// locked thread. So it passes the step on to a goroutine, unless the coroutines belong to its own locked thread.
func (l *Loop) step() {
	if !l.claim() {
		return
	}
	if l.givenUp.Load() && !l.locked {
		l.wake()
		return
	}
	if !l.looked {
		l.looked, l.locked = true, lockedToThread()
	}
	l.run()
}

// ownStep runs on a goroutine.
func (l *Loop) ownStep() {
	if !l.claim() {
		return
	}
	if l.locked {
		l.abandon()
		return
	}
	l.looked = true // a coroutine that is made from here on belongs to no thread
	l.run()
}

// abandon ends a Loop whose thread has ended. Idle coroutines stay: they can stop on their thread only.
func (l *Loop) abandon() {
	l.core.Close() // a task that came later would never run
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

// after comes after a step: it ends the Loop, requests another step, or sleeps.
func (l *Loop) after() {
	if l.core.Done() && l.core.Empty() {
		l.core.Release()
		l.stalls.Stop()
		l.gone.Fill(struct{}{})
		return
	}
	if l.core.Empty() && l.core.Sleep() {
		// If it was closed since, the last step is still to come, but another goroutine may have requested it.
		if !l.core.Done() || !l.core.Rouse() {
			return
		}
	}
	l.wake()
}

// lockedToThread reports whether the calling goroutine is.
func lockedToThread() bool {
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	return bytes.Contains(head, []byte("locked to thread"))
}
