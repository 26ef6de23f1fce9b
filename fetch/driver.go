package fetch

import (
	"context"

	"github.com/braidgo/braid/idle"
	"github.com/braidgo/braid/suspend"
)

// A driver collects the requests of one Run, or of the goroutines that are in none, and sends them when its tasks are
// quiescent: when none of them is runnable. There are three kinds of quiescence: ordered, counted and settled.
// -G> is a Get that makes a request, -I> the finding that nothing is runnable, -B> the last batch of a round that is back,
// -T> the task that hands its answers out, or the last batch itself.
//
//	quiet   -G> armed    idle is going to be called
//	armed   -I> sending  the contexts of all waiters are looked at once more, under no guard
//	sending -I> open     at least one batch goes out
//	sending -I> quiet    all waiters have given up
//	open    -B> handing
//	handing -T> quiet, or armed if requests have come meanwhile
//
// With Eager a driver is never open or handing: each batch hands out its own answers.
//
// Invariant: while sending, open or handing, nothing is sent.
// Debt: the end of that state arms the driver again, if requests are pending.
type driver struct {
	s        *Session
	on       suspend.Spawner // of its tasks; nil for goroutines that are no tasks
	policy   Policy
	ordered  bool        // its tasks run one at a time, on one goroutine
	settled  bool        // it has no tasks of its own
	settling *settling   // that is going to call idle; nil: none
	waiters  int         // that have come so far
	group    *idle.Group // counted
	pending  []*request  // in the order of asking; some may be gone
	wanted   int         // of these, those that somebody waits for
	writes   []*request  // of effects, likewise
	armed    bool        // idle is going to be called
	sending  bool
	current  *round   // open or handing
	batches  []*batch // open, or to be opened
	ended    bool     // its Run is over
	ender    suspend.Resumer[struct{}]

	// Most rounds are of few sources, and need no room elsewhere.
	roomTables  [2]table
	roomCut     [2]*batch
	roomBatches [2]*batch
	roomPending [1]*request // of the first round
	roomRound   round       // likewise
	roomUsed    bool        // that of pending
}

// register makes d the driver of the tasks of on.
func (d *driver) register(on suspend.Spawner) {
	d.on = on
	s := d.s
	s.guard.Lock()
	if s.drivers == nil {
		s.drivers = s.roomDrivers[:0]
	}
	s.drivers = append(s.drivers, d)
	s.guard.Unlock()
}

// driverHere returns the driver of the calling goroutine. A context may have come from elsewhere, so it is only a hint.
func (s *Session) driverHere(f *frame) *driver {
	on := suspend.Here()
	if f.d != nil && f.d.on == on {
		return f.d
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	for _, d := range s.drivers {
		if d.on == on {
			return d
		}
	}
	return s.settled
}

// addLocked adds a request to those that are to be sent.
func (d *driver) addLocked(q *request) {
	q.d = d
	if q.write {
		d.writes = append(d.writes, q)
	} else {
		d.pendLocked(q)
	}
	if q.needed > 0 {
		d.wantLocked()
	}
}

// pendLocked adds a read, also one that was another driver's.
func (d *driver) pendLocked(q *request) {
	if !d.roomUsed {
		d.roomUsed, d.pending = true, d.roomPending[:0]
	}
	d.pending = append(d.pending, q)
}

// wantLocked says that somebody waits for one more of the requests.
func (d *driver) wantLocked() {
	d.wanted++
	d.armLocked()
}

// armLocked arranges for a call of idle once nothing is runnable, if a request is pending.
func (d *driver) armLocked() {
	if d.wanted == 0 || d.armed || d.sending || d.current != nil || d.s.ended {
		return
	}
	switch {
	case d.ordered: // its scheduler calls idle
		d.armed = true
	case d.settled:
		d.armed = true
		d.settleLocked()
	case d.group.Idle(): // or else the last to park calls it
		goroutine(d.idle)
	}
}

// orderedIdle is called when the scheduler of an ordered driver has run something and finds nothing runnable.
func (d *driver) orderedIdle() {
	defer func() { // also if a source that is Inline ends this goroutine
		d.s.guard.Lock()
		d.rouseLocked() // writes may be left
		d.s.guard.Unlock()
	}()
	d.idle()
}

// rouseLocked has an ordered driver's scheduler call idle, if d is armed, where none of its tasks is going to run: it may be asleep.
func (d *driver) rouseLocked() {
	if d.ordered && d.armed {
		_ = d.on.(suspend.Executor).Execute(nothing)
	}
}

func nothing() {}

// idle is called when none of the driver's tasks is runnable. It sends the pending requests.
func (d *driver) idle() {
	s := d.s
	s.guard.Lock()
	d.armed = false
	if d.wanted == 0 || d.sending || d.current != nil || d.ended || s.ended || d.group != nil && !d.group.Idle() {
		s.guard.Unlock()
		return
	}
	d.sending = true
	taken := d.takeLocked()
	var waiters []*waiter
	for _, q := range taken {
		for l := q.first; l != nil; l = l.next {
			if !l.w.prompt {
				waiters = append(waiters, l.w)
			}
		}
	}
	s.guard.Unlock()
	late := waiters[:0]
	for _, w := range waiters { // a context of package context tells late
		if w.lookAtContext() {
			late = append(late, w)
		}
	}
	s.guard.Lock()
	for _, w := range late {
		w.leaveLocked()
	}
	start := d.sendLocked(taken)
	d.sending = false
	d.armLocked()
	s.guard.Unlock()
	beginAll(start)
}

// takeLocked takes the requests that are to be sent: reads, and if there are none, writes.
func (d *driver) takeLocked() (taken []*request) {
	for _, q := range d.pending {
		if q.needed > 0 && q.d == d && q.state == pending {
			taken, d.pending = d.pending, nil
			return taken
		}
	}
	taken, d.writes = d.writes, nil
	return taken
}

// sendLocked makes batches of the taken requests, and returns the first of those that can begin.
func (d *driver) sendLocked(taken []*request) (start *batch) {
	live, needed := taken[:0], 0
	for _, q := range taken {
		if q.state == pending && q.d == d {
			live = append(live, q)
			needed += int(min(q.needed, 1))
		}
	}
	clear(taken[len(live):])
	if needed == 0 || d.ended || d.s.ended { // an Ask causes no round
		d.pending = append(live, d.pending...)
		d.releaseLocked()
		return nil
	}
	d.wanted -= needed
	d.s.stats.Rounds++
	r := &d.roomRound
	if r.d != nil {
		r = new(round)
	}
	*r = round{d: d, requests: live, number: d.s.stats.Rounds}
	if d.policy == Rounds {
		d.current = r
	}
	tables, last := d.roomTables[:0], &start
	for _, q := range live {
		q.state = open
		if t, first := q.gatherLocked(len(live)); first {
			tables = append(tables, t)
		}
	}
	for _, t := range tables {
		for _, b := range t.cutLocked(d.roomCut[:0]) {
			b.d, b.round = d, r
			if d.policy == Eager || b.needed == 0 { // nobody waits for an Ask
				b.round = &round{d: d, requests: b.self.requests(), number: r.number}
			}
			b.round.open++
			if d.batches == nil {
				d.batches = d.roomBatches[:0]
			}
			d.batches = append(d.batches, b)
			d.s.tracer.sendLocked(b, t.label())
			d.s.open++
			if b.self.mayStartLocked() {
				*last, last = b, &b.then
			}
		}
	}
	return start
}

// A round is a number of requests whose answers are handed out together. With Eager it is a batch.
type round struct {
	d        *driver
	number   int
	requests []*request // in the order of asking
	at       int        // those before it are handed out
	open     int        // batches
}

// backLocked says that one more batch of r is back.
func (r *round) backLocked() {
	if r.open--; r.open > 0 {
		return
	}
	if r.d.ordered && r.handLocked(true) {
		return // the task that was resumed hands out the rest
	}
	r.handLocked(false)
	r.overLocked()
	r.d.rouseLocked()
}

// handLocked hands out the answers. With first it stops after the first task that it has resumed, which hands out the rest. So all
// tasks of an ordered driver are resumed on its own goroutine, before any of them goes on.
func (r *round) handLocked(first bool) bool {
	for ; r.at < len(r.requests); r.at++ {
		q := r.requests[r.at]
		if q.b.round != r {
			continue
		}
		if q.state == back {
			q.doneLocked()
		}
		if q.state != done {
			continue
		}
		for l := q.first; l != nil; l = q.first {
			w := l.w
			if l.unlinkLocked(); w.left > 0 {
				continue
			}
			if !first {
				w.r.Resume(struct{}{}, nil)
				continue
			}
			if w.duty = r; w.r.Resume(struct{}{}, nil) {
				return true
			}
			w.duty = nil // it was cancelled
		}
	}
	return false
}

// overLocked ends the round, after the last answer is handed out. Earlier, the tasks that are woken first and park again would be a
// small round of their own.
func (r *round) overLocked() {
	if r.d.current == r {
		r.d.current = nil
	}
	r.d.armLocked()
}

// end is the end of the driver's Run. What others wait for goes on; everything else is cancelled and waited for.
func (d *driver) end() {
	s := d.s
	s.guard.Lock()
	d.ended = true
	for i, other := range s.drivers {
		if other == d {
			s.drivers = append(s.drivers[:i], s.drivers[i+1:]...)
			break
		}
	}
	d.releaseLocked()
	var cancels []*batch
	for _, b := range d.batches {
		if b.needed == 0 && !b.write && !b.cancelled {
			cancels = append(cancels, b)
		}
	}
	for _, b := range cancels {
		b.cancelLocked() // which takes it off d.batches, if it has not started
	}
	s.guard.Unlock()
	cancelAll(cancels, nil)
	_, _ = suspend.Wait[struct{}](context.Background(), (*driverEnd)(d), false)
}

// releaseLocked has pending requests do without d, if its Run or its session is over: nothing that d has is sent any more. That is so
// for requests as well that were about to be sent at the end.
func (d *driver) releaseLocked() {
	switch {
	case d.s.ended:
		d.abandonLocked()
	case d.ended:
		d.disownLocked()
	}
}

// disownLocked forgets the pending requests, since the Run is over. Those that others wait for go on.
func (d *driver) disownLocked() {
	for _, q := range d.pending {
		switch {
		case q.state != pending || q.d != d:
		case q.needed > 0:
			q.moveLocked(d.s.settled)
		default:
			q.forgetLocked()
		}
	}
	d.pending = nil
}

// A driverEnd is the Source on which the end of a Run waits until none of its batches is open.
type driverEnd driver

func (d *driverEnd) Guard() *suspend.Guard                 { return &d.s.guard }
func (d *driverEnd) Try() (v struct{}, ok bool, err error) { return v, len(d.batches) == 0, nil }
func (d *driverEnd) Enqueue(r suspend.Resumer[struct{}])   { d.ender = r }
func (d *driverEnd) Remove(suspend.Resumer[struct{}])      {}

// abandonLocked fails all pending requests, since the session has ended.
func (d *driver) abandonLocked() {
	for _, q := range append(d.pending, d.writes...) {
		if q.state == pending && q.d == d {
			q.state = gone
			q.end(ErrEnded)
			q.resumeLocked(false)
		}
	}
	d.pending, d.writes, d.wanted = nil, nil, 0
}
