package cores_test

import "time"

// A transaction reads and writes two of 1024 Vars. Its commit has one of three forms: serial as in package stm, in groups (flat combining,
// Hendler et al. 2010: a thread that has the guard commits what others have published), or with a lock in each Var (TL2, Dice et al. 2006).

// A variable is a Var: the line with the pointer to its box, and the line of the box.
type variable struct {
	cell, box line
	version   int
	locked    bool
}

// A store has the words that all commits share.
type store struct {
	clock line
	guard *syncMutex
	vars  [1024]variable
	all   []*request // for commits in groups
}

// A request is a transaction that another thread may commit.
type request struct {
	log, state   line
	of           [2]*variable
	seen         [2]int
	pending, won bool
}

func newStore() *store { return &store{guard: newSyncMutex()} }

// compute is what a transaction computes besides its atomics, so that one takes 158 ns on one core.
const compute = 65 * time.Nanosecond

// attempt reads two Vars, and returns them with what it has seen.
func (s *store) attempt(t *thread) (of [2]*variable, seen [2]int) {
	t.read(&s.clock)
	i := t.m.random.IntN(len(s.vars))
	of = [2]*variable{&s.vars[i], &s.vars[(i+1+t.m.random.IntN(len(s.vars)-1))%len(s.vars)]}
	for i, v := range of {
		t.read(&v.cell)
		for v.locked { // until the commit of the Var has ended
			t.spend(move)
			t.read(&v.cell)
		}
		seen[i] = v.version
		t.read(&v.box)
	}
	t.spend(compute)
	return of, seen
}

// publish writes the new boxes, if the Vars are as they were seen.
func (s *store) publish(t *thread, of [2]*variable, seen [2]int) bool {
	for i, v := range of {
		if t.read(&v.cell); v.version != seen[i] {
			return false
		}
	}
	for _, v := range of {
		t.write(&v.cell)
		v.version++
		v.box = line{copies: map[*core]held{t.on: {forever, true}}}
	}
	return true
}

func (s *store) serial(t *thread, _ *request) {
	for done := false; !done; {
		of, seen := s.attempt(t)
		s.guard.lock(t)
		t.read(&s.clock)
		if done = s.publish(t, of, seen); done {
			t.write(&s.clock)
		}
		s.guard.unlock(t)
	}
}

// grouped commits for all threads that have published a request. A thread with a request looks at it again and again.
func (s *store) grouped(t *thread, r *request) {
	for r.won = false; !r.won; {
		r.of, r.seen = s.attempt(t)
		t.write(&r.log)
		t.write(&r.state)
		r.pending = true
		for r.pending {
			if s.guard.state.locked || !s.guard.cas(t, syncState{}, syncState{locked: true}) {
				t.spend(2 * move)
				t.read(&r.state)
				continue
			}
			for _, o := range s.all {
				if t.read(&o.state); o.pending {
					t.read(&o.log)
					o.won = s.publish(t, o.of, o.seen)
					t.write(&o.state)
					o.pending = false
				}
			}
			t.write(&s.clock)
			s.guard.unlock(t)
		}
	}
}

// striped locks each Var that it writes.
func (s *store) striped(t *thread, _ *request) {
again:
	of, seen := s.attempt(t)
	for i, v := range of {
		if t.write(&v.cell); v.locked || v.version != seen[i] {
			if i == 1 {
				t.write(&of[0].cell)
				of[0].locked = false
			}
			goto again
		}
		v.locked = true
	}
	t.write(&s.clock)
	for _, v := range of {
		t.write(&v.cell)
		v.version++
		v.locked = false
		v.box = line{copies: map[*core]held{t.on: {forever, true}}}
	}
}

// committing returns the time for each of many transactions, by a thread on each core, with commits of the given form.
func committing(cores int, commit func(*store, *thread, *request)) time.Duration {
	const n = 5_000
	s := newStore()
	fs := make([]func(*thread), cores)
	for i := range fs {
		r := &request{}
		s.all = append(s.all, r)
		fs[i] = func(t *thread) {
			for range n / cores {
				commit(s, t, r)
			}
		}
	}
	return run(1, cores, fs...).now / n
}
