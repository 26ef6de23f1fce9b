package runner

import "sync"

// An Item is a unit of work: a runnable task, a new task, or a callback.
type Item struct {
	next *Item
	task *Task // the task to resume; if it is nil, f is a new task, and if it is the variable callback, f is a callback
	f    func()
}

// callback marks the Items that are callbacks.
var callback = new(Task)

func (it *Item) isNew() bool { return it.task == nil || it.task == callback }

// A list is a queue of Items. The zero list is empty.
type list struct{ first, last *Item } // last is meaningless if first is nil

func (l *list) append(it *Item) {
	it.next = nil
	if l.first == nil {
		l.first = it
	} else {
		l.last.next = it
	}
	l.last = it
}

func (l *list) prepend(it *Item) {
	if it.next = l.first; it.next == nil {
		l.last = it
	}
	l.first = it
}

func (l *list) pop() *Item {
	it := l.first
	if it != nil {
		l.first, it.next = it.next, nil
	}
	return it
}

func (l *list) len() (n int) {
	for it := l.first; it != nil; it = it.next {
		n++
	}
	return n
}

// maxFree is the maximum number of Items in freeItems.
const maxFree = 256

// freeItems holds empty Items, for tasks that begin other tasks. Further Items go to a sync.Pool, which keeps them for
// the next Run. With the sync.Pool alone, each task would take a tenth longer.
type freeItems struct {
	first *Item
	n     int
}

var idleItems = sync.Pool{New: func() any { return new(Item) }}

func (free *freeItems) get() *Item {
	it := free.first
	if it == nil {
		return idleItems.Get().(*Item)
	}
	free.first, it.next = it.next, nil
	free.n--
	return it
}

// giveBack leaves one Item to the next Run, and drops all further Items.
func (free *freeItems) giveBack() {
	if it := free.first; it != nil {
		*free, it.next = freeItems{}, nil
		idleItems.Put(it)
	}
}

// put empties an Item, keeps it for reuse, and returns its function.
func (free *freeItems) put(it *Item) (f func()) {
	f = it.f
	if free.n == maxFree {
		*it = Item{}
		idleItems.Put(it)
		return f
	}
	*it = Item{next: free.first}
	free.first = it
	free.n++
	return f
}
