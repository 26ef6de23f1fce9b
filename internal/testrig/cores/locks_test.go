package cores_test

import (
	"slices"
	"time"
)

type locker interface {
	lock(t *thread)
	unlock(t *thread)
}

// A syncMutex is sync.Mutex, as in internal/sync/mutex.go.
type syncMutex struct {
	word  *line
	state syncState
	sema  line // the root of its treap
	free  int
	queue []*thread
}

type syncState struct {
	locked, woken, starving bool
	waiters                 int
}

const (
	starvation = time.Millisecond
	spins      = 4
)

func newSyncMutex() *syncMutex { return &syncMutex{word: new(line)} }

func (l *syncMutex) cas(t *thread, old, to syncState) bool {
	t.write(l.word)
	ok := l.state == old
	if ok {
		l.state = to
	}
	return ok
}

func (l *syncMutex) lock(t *thread) {
	if l.cas(t, syncState{}, syncState{locked: true}) {
		return
	}
	began, starving, awoke, spun := time.Duration(0), false, false, 0
	for old := l.state; ; old = l.state {
		if old.locked && !old.starving && spun < spins && t.canSpin() {
			if to := old; !awoke && !old.woken && old.waiters > 0 {
				to.woken = true
				awoke = l.cas(t, old, to)
			}
			t.spend(pause)
			t.read(l.word)
			spun++
			continue
		}
		to := old
		to.locked = old.locked || !old.starving
		to.starving = old.starving || starving && old.locked
		if old.locked || old.starving {
			to.waiters++
		}
		to.woken = old.woken && !awoke
		if !l.cas(t, old, to) {
			continue
		}
		if !old.locked && !old.starving {
			return
		}
		first := began == 0
		if first {
			began = t.m.now
		}
		l.acquire(t, !first)
		starving = starving || t.m.now-began > starvation
		t.read(l.word)
		if l.state.starving {
			t.write(l.word)
			l.state.waiters--
			l.state.locked, l.state.starving = true, starving && l.state.waiters > 0
			t.m.counts["hand-overs"]++
			return
		}
		awoke, spun = true, 0
	}
}

func (l *syncMutex) unlock(t *thread) {
	t.write(l.word)
	l.state.locked = false
	for old := l.state; !old.starving; old = l.state {
		if old.waiters == 0 || old.locked || old.woken {
			return
		}
		to := old
		to.waiters--
		to.woken = true
		if l.cas(t, old, to) {
			l.release(t)
			return
		}
	}
	l.release(t)
	t.yield(givesWay)
}

// acquire is runtime_SemacquireMutex.
func (l *syncMutex) acquire(t *thread, first bool) {
	t.write(&l.sema)
	if l.free > 0 {
		l.free--
		return
	}
	if first {
		l.queue = slices.Insert(l.queue, 0, t)
	} else {
		l.queue = append(l.queue, t)
	}
	t.m.counts["waits"]++
	t.park()
}

// release is runtime_Semrelease.
func (l *syncMutex) release(t *thread) {
	t.write(&l.sema)
	if len(l.queue) == 0 {
		l.free++
		return
	}
	u := l.queue[0]
	l.queue = l.queue[1:]
	t.ready(u)
}

// A policy is a form of mutex.Mutex.
type policy struct {
	patience func(waiting int) int // the nudges before a hand-over
	starve   time.Duration         // or the time before a hand-over
	adds     bool                  // Unlock releases the lock by its first atomic, even if threads wait, and then wakes a waiter
	yields   bool                  // Unlock gives way to the waiter
	spins    int                   // the looks of a Lock before it waits
	spin     time.Duration         // the time between two looks
}

// A braidMutex is mutex.Mutex. Its word, its guard and the ends of its queue lie in one line.
type braidMutex struct {
	policy
	word                 line
	held, waited, nudged bool
	guard                *syncMutex
	queue                []*thread
}

func newBraidMutex(p policy) *braidMutex {
	l := &braidMutex{policy: p}
	l.guard = &syncMutex{word: &l.word}
	return l
}

const prepare = 150 * time.Nanosecond // of a wait, before it queues: a record of the goroutine, two closures

func (l *braidMutex) tryLock(t *thread) bool {
	if t.write(&l.word); l.waited && !l.held { // the first CAS has expected no flags
		t.write(&l.word)
	}
	ok := !l.held
	l.held = true
	return ok
}

func (l *braidMutex) lock(t *thread) {
	if l.tryLock(t) {
		return
	}
	for range l.spins {
		t.spend(l.spin)
		if t.read(&l.word); l.held {
			continue
		}
		if t.write(&l.word); !l.held {
			l.held = true
			return
		}
	}
	t.spend(prepare)
	t.waitedAt = t.m.now
	for t.nudges, t.owner = 0, false; !t.owner; t.nudges++ {
		l.guard.lock(t)
		t.write(&l.word)
		l.nudged = l.nudged && t.nudges == 0
		if !l.held {
			l.held, l.waited = true, len(l.queue) > 0 || l.nudged
			l.guard.unlock(t)
			return
		}
		l.waited = true
		if t.nudges > 0 {
			l.queue = slices.Insert(l.queue, 0, t)
		} else {
			l.queue = append(l.queue, t)
		}
		t.write(&t.word)
		l.guard.unlock(t)
		t.m.counts["waits"]++
		t.park()
	}
}

func (l *braidMutex) unlock(t *thread) {
	if t.write(&l.word); l.waited && !l.adds { // the CAS has expected no flags
		t.write(&l.word)
	}
	due := len(l.queue) > 0 && (l.starve > 0 && t.m.now-l.queue[0].waitedAt > l.starve || l.starve == 0 && l.queue[0].nudges >= l.patience(len(l.queue)))
	l.held = l.waited && !l.nudged && (due || !l.adds)
	if !l.waited || l.nudged {
		return
	}
	keeps := l.held
	l.guard.lock(t)
	t.write(&l.word)
	if keeps || !l.held && !l.nudged {
		l.passOn(t, keeps, due)
	}
	l.guard.unlock(t)
	if l.yields {
		t.yield(givesWay)
	}
}

// passOn wakes the first waiter. If t keeps the lock, passOn hands it over or releases it.
func (l *braidMutex) passOn(t *thread, keeps, due bool) {
	if len(l.queue) == 0 {
		l.waited, l.held = false, l.held && !keeps
		return
	}
	u := l.queue[0]
	l.queue = l.queue[1:]
	if u.owner = keeps && due; u.owner {
		t.m.counts["hand-overs"]++
		l.waited = len(l.queue) > 0
	} else if !keeps {
		l.nudged = true
	}
	t.write(&u.word)
	t.ready(u)
	if keeps && !u.owner {
		t.write(&l.word)
		l.held, l.nudged = false, true
	}
}
