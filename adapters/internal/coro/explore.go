//go:build explore

package coro

// Len is for the model checker: the number of Items in a list that was taken.
func (it *Item) Len() (n int) {
	for ; it != nil; it = it.next {
		n++
	}
	return n
}

// A Posting is a Runner for the model checker: it has one task, which parks again whenever it has run, and no coroutine.
type Posting struct {
	*Runner
	task Task
}

// NewPosting returns one whose task is parked.
func NewPosting(wake func()) *Posting {
	p := &Posting{Runner: NewRunner(nil, wake, nil)}
	p.task.runner, p.task.own = p.Runner, parked
	p.task.Item.task, p.task.post.task = &p.task, &p.task
	return p
}

// Unpark is the task's.
func (p *Posting) Unpark() { p.task.Unpark() }

// Ran reports whether the task has had a turn.
func (p *Posting) Ran() bool {
	if p.Next() == nil {
		return false
	}
	if !p.task.commit() {
		p.put(&p.task.Item) // woken
	}
	return true
}
