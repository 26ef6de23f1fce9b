package coro

import (
	"bytes"

	"github.com/braidgo/braid/internal/threadlock"
)

// A task may lock its goroutine to its thread, with runtime.LockOSThread, or because the task has called C code that has called a Go
// function. The runtime ends the process if a locked goroutine switches to one that is not. So another goroutine makes the switch in its
// place, and the task's goroutine waits natively. The worker (-W>) and the task (-T>) see what they see of any coroutine:
//
//	task, locked             stand-in                       worker
//	Leave
//	-T> starts a stand-in    -T> switches to the worker     runs other tasks
//	waits on a channel       is suspended                   -W> resumes the coroutine, which is the stand-in now
//	-T> continues            sends on the channel, ends     has switched to the coroutine
//	unlocks its thread
//	Leave
//	-T> switches to the worker                              runs other tasks
//
// A coroutine that was itself created on a locked thread always switches on that thread.

// A lock is the relation of a coroutine to locked threads.
type lock uint8

const (
	free     lock = iota // the coroutine was created without a lock
	pinned               // the coroutine was created on a locked thread
	stranded             // the last task has ended with its thread locked
)

// findLock records whether c was created on a locked thread. It is called in the first step.
func (c *Coroutine) findLock() {
	threadlock.Find()
	if threadlock.Locked(c.place.G()) {
		c.locks = pinned
	}
}

// Locked reports whether the task of c has locked its thread. It must be called on c.
func (c *Coroutine) Locked() bool { return threadlock.Locked(c.place.G()) && c.locks == free }

// yieldLocked gives control back for a task that has locked its thread.
func (c *Coroutine) yieldLocked(struct{}) bool {
	turn := make(chan bool)
	go func() { turn <- c.yield(struct{}{}) }()
	return <-turn
}

// suspended reports whether the goroutine with this stack trace has given control back.
func suspended(stack []byte) bool {
	return waitState(stack) == "coroutine" || bytes.Contains(stack, []byte("coro.(*Coroutine).yieldLocked("))
}

// strand gives control back for a task that has ended with its thread locked, and does not return. A goroutine that ends in this way ends
// its thread, too, because the thread may be in a state that would surprise another goroutine. A coroutine cannot end without a
// switch, so its goroutine and its thread stay for ever, and the watch reports the task.
func (c *Coroutine) strand() {
	watch := c.watch.Load()
	c.watch.Store(nil) // the worker goes on with other tasks, whose stalls are not those of this goroutine
	watch.threadStays()
	c.why, c.locks = Exited, stranded
	go func() { c.yield(struct{}{}) }()
	select {}
}
