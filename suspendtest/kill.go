package suspendtest

import (
	"testing"

	"github.com/braidgo/braid/suspend"
)

// Kill checks that a task that its scheduler ends loses nothing and keeps nothing: if a Kill and a Resume meet, exactly one wins; see
// suspend.Bound. It is for schedulers that call Kill, such as a simulation at a crash, and for each Task that decorates the tasks of
// such a scheduler. Kill must be called in a task. The function open returns a Spawner, and a function that kills all tasks of this Spawner
// but not the calling task.
func Kill(t testing.TB, open func() (on suspend.Spawner, kill func())) {
	t.Helper()
	for _, c := range killChecks {
		on, kill := open()
		k := &killed{lock: killLock{held: true}, never: killLock{held: true}}
		if err := on.Go(func() {
			defer func() {
				if k.inside {
					k.lock.release()
				}
				k.ended = true
			}()
			c.task(k)
			k.behind = true
			_ = k.never.acquire()
			k.survived = true
		}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !k.until(func() bool { return k.lock.waiting.Len() > 0 }) {
			t.Fatalf("%s: the task does not wait", c.name)
		}
		if c.unlockFirst {
			k.lock.release()
			kill()
		} else {
			kill()
			k.until(func() bool { return k.ended })
			k.lock.release()
		}
		k.until(func() bool { return k.ended })
		switch {
		case !k.ended || k.survived:
			t.Errorf("%s: the task has not ended", c.name)
		case k.lock.held:
			t.Errorf("%s: the lock was handed to a task that was killed, and is lost", c.name)
		case k.inside != c.inside:
			t.Errorf("%s: the wait has returned: %v, want %v", c.name, k.inside, c.inside)
		case k.behind != c.behind:
			t.Errorf("%s: the task has reached its next wait: %v, want %v", c.name, k.behind, c.behind)
		}
	}
}

// A killed is a task that waits for a lock, and then for ever.
type killed struct {
	lock, never                     killLock
	inside, behind, ended, survived bool
}

// holdLock waits for the lock in the given way, and keeps the lock until the task ends.
func (k *killed) holdLock(acquire func() error) { k.inside = acquire() == nil }

// until yields until cond is true, or for many times.
func (k *killed) until(cond func() bool) bool {
	for range 10_000 {
		if cond() {
			return true
		}
		suspend.Yield()
	}
	return false
}

var killChecks = []struct {
	name        string
	task        func(k *killed)
	unlockFirst bool // the Resume comes before the Kill
	inside      bool // the wait for the lock returns
	behind      bool // the task comes to its next wait
}{
	{"a Wait that was resumed", func(k *killed) { k.holdLock(k.lock.acquire) }, true, true, true},
	{"a Select that was resumed", func(k *killed) { k.holdLock(k.lock.acquireInSelect) }, true, true, true},
	{"a Suspend that was resumed", func(k *killed) { k.holdLock(k.lock.acquireInSuspend) }, true, true, true},
	{"a Wait", func(k *killed) { k.holdLock(k.lock.acquire) }, false, false, false},
	{"a Select", func(k *killed) { k.holdLock(k.lock.acquireInSelect) }, false, false, false},
	{"a Wait in a Shield", func(k *killed) {
		suspend.Shield(func() {
			suspend.Shield(func() {}) // the end of an inner Shield must not end the outer one
			k.holdLock(k.lock.acquire)
		})
	}, true, true, false},
}

// A killLock is a lock that is handed to its first waiter.
type killLock struct {
	guard   suspend.Guard
	held    bool
	waiting suspend.Queue[struct{}, struct{}]
}

func (l *killLock) Guard() *suspend.Guard               { return &l.guard }
func (l *killLock) Enqueue(r suspend.Resumer[struct{}]) { l.waiting.Push(r, struct{}{}) }
func (l *killLock) Remove(r suspend.Resumer[struct{}])  { l.waiting.Remove(r) }

func (l *killLock) Try() (v struct{}, ok bool, err error) {
	if l.held {
		return v, false, nil
	}
	l.held = true
	return v, true, nil
}

func (l *killLock) release() {
	l.guard.Lock()
	defer l.guard.Unlock()
	_, l.held = l.waiting.Resume(struct{}{}, nil)
}

// acquire, acquireInSelect and acquireInSuspend wait for the lock in a Wait, a Select and a Suspend.

func (l *killLock) acquire() error {
	_, err := suspend.Wait[struct{}](background, l)
	return err
}

func (l *killLock) acquireInSelect() error {
	_, err := suspend.Select(background, suspend.CaseOf(suspend.OpOf[struct{}](l)), suspend.CaseOf(suspend.Op[int]{}))
	return err
}

func (l *killLock) acquireInSuspend() error {
	_, err := suspend.Suspend(background, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		l.guard.Lock()
		defer l.guard.Unlock()
		_, ok, _ := l.Try()
		if !ok {
			l.Enqueue(r)
		}
		return struct{}{}, ok
	})
	return err
}
