//go:build explore

package runner

import "github.com/braidgo/braid/suspend"

// This file gives the model checker the shared state of tasks and Runners, without coroutines.

// Len returns the number of Items in a list that Take has returned.
func (it *Item) Len() (n int) {
	for ; it != nil; it = it.next {
		n++
	}
	return n
}

// A Posting is a Driven whose tasks park again after each step.
type Posting struct {
	*Driven
	tasks []Task
}

// NewPosting returns a Posting with n parked tasks.
func NewPosting(n int) *Posting {
	p := &Posting{NewDriven(nil, nil, nil, nil, suspend.ErrClosed), make([]Task, n)}
	for i := range p.tasks {
		t := &p.tasks[i]
		t.runner.Store(&p.Runner)
		t.Mark = parked
		t.Item.task, t.post.task = t, t
	}
	return p
}

// Adopt ends another Posting and moves its tasks to p, which must have no tasks.
func (p *Posting) Adopt(from *Posting) {
	from.Release()
	p.tasks = from.tasks
	for i := range p.tasks {
		p.tasks[i].runner.Store(&p.Runner)
	}
}

// Unpark unparks the i'th task.
func (p *Posting) Unpark(i int) { p.tasks[i].Unpark() }

// Drive runs p on the calling goroutine until over() returns true. It calls ran(i) whenever the i'th task has had a
// turn, and calls the submitted functions.
func (p *Posting) Drive(over func() bool, ran func(task int)) {
	p.parent = suspend.Self()
	p.Own()
	for !over() {
		it := p.Next()
		switch {
		case it == nil:
			p.sleep()
		case it.isNew():
			p.runCallback(p.free.put(it))
		default:
			for i := range p.tasks {
				if it.task == &p.tasks[i] {
					ran(i)
				}
			}
			if it.task.Leave(); it.task.Mark != parked { // the task was woken
				p.put(it)
			}
		}
	}
}

// RunPlainly runs the next Item on the calling goroutine, without a coroutine. The Item must not suspend.
func (r *Runner) RunPlainly() {
	if it := r.Next(); it != nil {
		defer r.live.Leave()
		r.free.put(it)()
	}
}
