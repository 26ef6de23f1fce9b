//go:build explore

package coro

import "github.com/braidgo/braid/suspend"

// What follows is for the model checker: the shared state of tasks and Runners, without coroutines.

// Len is the number of Items in a list that was taken.
func (it *Item) Len() (n int) {
	for ; it != nil; it = it.next {
		n++
	}
	return n
}

// A Posting is a Driven whose tasks park again whenever they have run.
type Posting struct {
	*Driven
	tasks []Task
}

// NewPosting returns one with so many tasks, all parked.
func NewPosting(tasks int) *Posting {
	p := &Posting{NewDriven(nil, nil, nil, nil), make([]Task, tasks)}
	for i := range p.tasks {
		t := &p.tasks[i]
		t.runner, t.own = p.Runner, parked
		t.Item.task, t.post.task = t, t
	}
	return p
}

// Unpark is that of the i'th task.
func (p *Posting) Unpark(i int) { p.tasks[i].Unpark() }

// Drive runs on the caller until over says so: ran is told which task has had a turn, functions submitted are called.
func (p *Posting) Drive(over func() bool, ran func(task int)) {
	p.parent = suspend.Self()
	p.Own()
	for !over() {
		it := p.Next()
		switch {
		case it == nil:
			p.sleep()
		case it.task == nil || it.task == callback:
			p.call(p.take(it))
		default:
			for i := range p.tasks {
				if it.task == &p.tasks[i] {
					ran(i)
				}
			}
			if !it.task.commit() {
				p.put(it) // woken
			}
		}
	}
}

// A Fiber is a task of a Host that is no Runner.
type Fiber struct{ t Task }

// NewFiber returns one that is runnable.
func NewFiber(h Host) *Fiber {
	return &Fiber{Task{host: h, yield: func(struct{}) bool { return false }}}
}

// Park is what its task does in order to park: false says that it has a permit and goes on.
func (f *Fiber) Park() bool {
	_, yield := f.t.Leave(nil, nil)
	return yield != nil
}

// Commit is what its worker does when the task has parked: false says that it is runnable.
func (f *Fiber) Commit() bool { return f.t.commit() }

// Unpark may be called from anywhere.
func (f *Fiber) Unpark() { f.t.Unpark() }
