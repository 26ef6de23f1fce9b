package suspend_test

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Mailbox is an operation written outside the module: a receive that accepts only some letters and leaves the others. It is a
// case like any other.
type Mailbox[T any] struct {
	guard   suspend.Guard
	letters []T
	readers []*reader[T]
}

type reader[T any] struct {
	m     *Mailbox[T]
	wants func(T) bool
	r     suspend.Resumer[T]
}

// Post delivers v to the first waiter that wants it, or stores it in the mailbox.
func (m *Mailbox[T]) Post(v T) {
	m.guard.Lock()
	defer m.guard.Unlock()
	for i, w := range m.readers {
		if w.wants(v) && w.r.Resume(v, nil) { // a waiter that refuses v was cancelled, and removes itself
			m.readers = append(m.readers[:i], m.readers[i+1:]...)
			return
		}
	}
	m.letters = append(m.letters, v)
}

// RecvOp receives the first letter for which wants returns true.
func (m *Mailbox[T]) RecvOp(wants func(T) bool) suspend.Op[T] {
	return suspend.OpOf[T](&reader[T]{m: m, wants: wants})
}

func (w *reader[T]) Guard() *suspend.Guard { return &w.m.guard }

func (w *reader[T]) Try() (v T, ok bool, err error) {
	for i, v := range w.m.letters {
		if w.wants(v) {
			w.m.letters = append(w.m.letters[:i], w.m.letters[i+1:]...)
			return v, true, nil
		}
	}
	return v, false, nil
}

func (w *reader[T]) Enqueue(r suspend.Resumer[T]) {
	w.m.readers = append(w.m.readers, &reader[T]{w.m, w.wants, r})
}

func (w *reader[T]) Remove(r suspend.Resumer[T]) {
	for i, x := range w.m.readers {
		if x.r == r {
			w.m.readers = append(w.m.readers[:i], w.m.readers[i+1:]...)
			return
		}
	}
}

func ExampleOpOf() {
	var m Mailbox[int]
	even := func(v int) bool { return v%2 == 0 }
	go func() {
		m.Post(1)
		m.Post(2)
	}()
	letter, timeout := suspend.CaseOf(m.RecvOp(even)), suspend.CaseOf(suspend.After(time.Minute))
	won, err := suspend.Select(context.Background(), letter, timeout)
	fmt.Println(won == letter, letter.Value(), err)
	// Output: true 2 <nil>
}
