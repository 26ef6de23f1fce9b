package runner

import "sync"

// An Item is something to run: a runnable task, a task to begin, or a callback.
type Item struct {
	next *Item
	task *Task // the task to resume; nil begins a task with f; callback calls f
	f    func()
}

// callback marks the Items that are no tasks.
var callback = new(Task)

func (it *Item) isNew() bool { return it.task == nil || it.task == callback }

// A list is a queue of Items. The zero list is empty.
type list struct{ first, last *Item } // last means nothing if first is nil

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

func (l *list) take() *Item {
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

// maxFree bounds freeItems.
const maxFree = 256

// freeItems are empty Items at hand, for a task that begins others. The rest goes to a sync.Pool, which alone would take
// a tenth longer for each task, and which keeps the Items of a Run for the next.
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

// giveBack leaves an Item to the next Run.
func (free *freeItems) giveBack() {
	if it := free.first; it != nil {
		*free, it.next = freeItems{}, nil
		idleItems.Put(it)
	}
}

// put empties it and returns its f.
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
