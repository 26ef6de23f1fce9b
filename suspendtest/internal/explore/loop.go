package explore

import "github.com/braidgo/braid/internal/preempt"

// A loop detects that a task goes round in a loop that changes nothing, and so waits for another task to change what it reads. Examples are
// a spin lock, a flag that is polled, and the reader of a seqlock, which tries again. Such a program has endless runs. Koval, Fedorov, Sokolova,
// Tsitelov and Alistarh describe the detection in Lincheck: A practical framework for testing concurrent data structures on JVM (CAV 2023).
//
// When a task has made many rounds, a reduced search starts again. It then makes a task wait after a few rounds, until a step of
// another task changes something that the last round has read. Until then, another round of a loop without a counter would only repeat the
// last one. If no other task can take a step, the loop goes on, so that an endless loop still fails the run. Programs
// without such a loop have the same runs as without this rule.
type loop struct {
	recent []footprint // the accesses since the last change, without the oldest
	period int         // the number of accesses in a round; 0 if the last access repeats none
	again  int         // how many accesses in a row have repeated the access one round before
}

const (
	spins     preempt.Kinds = 1 << 7 // the bit of Config.looks for a search in which loops wait
	many                    = 100    // this many rounds make a search start again
	longRound               = 32     // the largest number of accesses in a round that is recognised
)

// add adds an access, and returns how many rounds the task has repeated.
func (l *loop) add(a footprint) (rounds int) {
	n := len(l.recent)
	if l.period > 0 && l.recent[n-l.period] == a {
		l.again++
	} else {
		l.period, l.again = 0, 0
		for p := 1; p <= min(n, longRound); p++ {
			if l.recent[n-p] == a {
				l.period, l.again = p, 1
				break
			}
		}
	}
	if n == 4*longRound {
		n = copy(l.recent, l.recent[n-longRound:])
	}
	l.recent = append(l.recent[:n], a)
	return l.again / max(l.period, 1)
}

// round returns the accesses of the last round, as reads.
func (l *loop) round() (reads []footprint) {
	for _, a := range l.recent[len(l.recent)-l.period:] {
		if a.kind == write {
			a.kind = read // it has changed nothing
		}
		reads = append(reads, a)
	}
	return reads
}

func (l *loop) reset() { *l = loop{recent: l.recent[:0]} }

// goesRound is called before t performs the access t.pending. If t goes round in a loop, t may have to wait before the access.
func (t *task) goesRound() {
	e := t.w.e
	if !e.Fine {
		return
	}
	kind := t.pending.kind
	if t.last == write && !t.quiet || kind == parks || kind > locks {
		t.loop.reset()
	}
	if t.last = kind; kind == nothing {
		return
	}
	rounds := t.loop.add(t.pending)
	switch {
	case !e.Reduced:
		if rounds >= many { // as if the loop called Yield
			e.cut.Rounds = true
			t.gaveWay()
		}
	case e.looks&spins == 0:
		if rounds >= many {
			e.looked |= spins
			t.w.redundant = true
		}
	case rounds >= max(e.Yields, 1):
		e.cut.Rounds = true
		t.awaits, t.held, t.changes = t.loop.round(), true, 0
		t.loop.reset()
	}
}

// endWaits is called after a step, by the task with the given id. If the step has changed what the loop of another task reads, this
// loop goes on, or its next round is not a repetition.
func (r *reduction) endWaits(id int) {
	if r.e.looks&spins == 0 {
		return
	}
	for i, t := range r.tasks[:len(r.ids)] {
		switch {
		case t == nil || i == id:
		case t.awaits != nil && conflicting(r.acts, t.awaits):
			t.held = false
			t.changes++
			t.changer = r.current
		case t.awaits == nil && conflicting(r.acts, t.loop.recent):
			t.loop.reset()
		}
	}
}

// loopsGoOn is called when no task can take a step. It lets all loops go on that wait for a change, and returns their tasks.
func (r *reduction) loopsGoOn() (enabled procs) {
	for id, t := range r.tasks[:len(r.ids)] {
		if t != nil && t.held {
			t.held, t.awaits = false, nil
			if t.canStep() {
				enabled |= one(id)
			}
		}
	}
	if enabled != 0 {
		r.joinAll()
	}
	return enabled
}
