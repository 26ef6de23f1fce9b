package suspend

import (
	"context"
	"sync"
)

// A goroutine stands for one that is suspended and has no task. When it goes on, the next that is suspended has its
// place: the generations of the word go on, so that the Resumers of the one are stale to the other. The channel is
// made for each wait: one that was kept could be carried from one testing/synctest bubble to another.
type goroutine struct {
	binding
	wake chan struct{}
}

// A goroutine is put back when nobody owes it an Unpark: its suspension is over, and whoever ended it has closed wake.
var idleGoroutines = sync.Pool{New: func() any {
	g := new(goroutine)
	g.task = g
	return g
}}

// newGoroutine returns one whose suspension begins with word, and is to end when done is closed.
func newGoroutine(ctx context.Context) (g *goroutine, word uint64, done <-chan struct{}) {
	g = idleGoroutines.Get().(*goroutine)
	g.wake = make(chan struct{})
	status := openToContext
	if done = ctx.Done(); isLazy(ctx) {
		status, done = openLazily, nil
	}
	if word = g.word.Load(); word&statusMask != status {
		word = next(word, status)
		g.word.Store(word)
	}
	return g, word, done
}

// sleep waits for the end of the suspension that began with word, and reports whether it was resumed.
func (g *goroutine) sleep(word uint64, done <-chan struct{}) (resumed bool) {
	if done == nil {
		<-g.wake
	} else {
		select {
		case <-g.wake:
		case <-done:
			if g.word.CompareAndSwap(word, with(word, cancelled)) {
				return false
			}
			<-g.wake
		}
	}
	return g.word.Load() != with(word, cancelled) // lazily
}

// Park is here for the sake of the Task interface: a goroutine waits in sleep.
func (g *goroutine) Park() { <-g.wake }

func (g *goroutine) Unpark() { close(g.wake) } // only the one that ended the suspension comes here

// suspendGoroutine is Suspend where no task is bound.
func suspendGoroutine[T any](ctx context.Context, block func(Resumer[T]) (T, bool)) (v T, err error) {
	if err := Err(ctx); err != nil {
		return v, err
	}
	g, word, done := newGoroutine(ctx)
	s := slotOf[T](&g.binding)
	s.done = ctx.Done()
	ok := false
	rebind(&g.binding, func() { v, ok = s.block(block, Resumer[T]{s, word}) }) // found, and refused, by a Suspend inside block
	pushed := s.queued != nil                                                  // then the caller comes with Remove, later
	if !ok {
		if g.sleep(word, done) {
			v, err = s.take()
		} else {
			err = cancellation(ctx)
		}
	}
	if s.done = nil; !pushed {
		idleGoroutines.Put(g) // not after a panic
	}
	return v, err
}

// waitGoroutine is Wait where no task is bound.
func waitGoroutine[T, P any](ctx context.Context, guard *Guard, q *Queue[T, P], p P, try func() (T, bool)) (v T, err error) {
	g, word, done := newGoroutine(ctx)
	s := slotOf[T](&g.binding)
	s.done = ctx.Done()
	guard.Lock()
	v, ok := try()
	if !ok {
		r := Resumer[T]{s, word}
		q.Push(r, p)
		guard.Unlock()
		if g.sleep(word, done) {
			v, err = s.take()
		} else {
			err = cancellation(ctx)
			guard.Lock()
			q.Remove(r)
			guard.Unlock()
		}
	} else {
		guard.Unlock()
	}
	s.done = nil
	idleGoroutines.Put(g)
	return v, err
}
