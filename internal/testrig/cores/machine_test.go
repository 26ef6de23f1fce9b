package cores_test

import (
	"container/heap"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// These are the costs of the model, and their sources.
const (
	atomic = 5 * time.Nanosecond     // an atomic on a line that the core has; a Lock and an Unlock of mutex-free in bench/RESULTS.md are two
	move   = 50 * time.Nanosecond    // a line moves to another core; 50 to 100 ns on one socket, see package sharing
	asked  = move / 2                // until the core that has the line learns that another one wants it
	change = 110 * time.Nanosecond   // a goroutine parks, and its core runs the next one; docs/maintainers/tried.md, mvar-parallel
	look   = 200 * time.Nanosecond   // a core without work looks into the run queues of all others
	futex  = 1000 * time.Nanosecond  // to wake a sleeping thread takes this from the core that does it,
	wakeUp = 5000 * time.Nanosecond  // and so long until the thread looks for work
	nap    = 58000 * time.Nanosecond // usleep(3) in runqgrab of runtime/proc.go: 3 µs, the slack of timers of 50 µs (prctl(2)), and a wake-up
	pause  = 1400 * time.Nanosecond  // procyield(30), 30 PAUSE of 140 cycles since Skylake (Intel, Optimization Reference Manual)
)

// These are yielded by a thread that does not compute.
const (
	parks    = -1 * time.Nanosecond
	givesWay = -2 * time.Nanosecond // goes to the end of the run queue of its core
)

// A machine has cores, and the events to come. As in runtime/proc.go, a goroutine that becomes ready runs next on the core that has made
// it ready, or on a core without work that takes it from there. At most one sleeping core is woken at a time.
type machine struct {
	now       time.Duration
	events    events
	seq       int
	cores     []*core
	searching int // the number of cores that look for work
	unended   int // the number of goroutines that have not ended
	random    *rand.Rand
	counts    map[string]int
}

type core struct {
	id        int
	next      *thread // runs next, before those in the queue
	queue     []*thread
	searching bool
	asleep    bool
}

// A thread is a goroutine of the model. Its function is a coroutine, which yields how long it computes.
type thread struct {
	m        *machine
	on       *core
	resume   func() (time.Duration, bool)
	yield    func(time.Duration) bool
	parked   bool
	token    bool // the thread was made ready before it has parked
	word     line // the line of the record with which it waits
	channel  line // the line of the channel in which it sleeps
	owner    bool
	nudges   int
	waitedAt time.Duration
}

// A line is a cache line. A core that writes it takes it from all others, one core after the other. A core keeps the line until the next
// core asks for it, but long enough for one access: an Unlock may find that the line has gone since the Lock.
type line struct {
	copies map[*core]held
	free   time.Duration // the end of the last move
	read   bool          // several cores may have copies, and further ones do not wait for each other
}

// A held says how long a core has a line, and whether it may write to it.
type held struct {
	until time.Duration
	write bool
}

const forever = time.Duration(math.MaxInt64)

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// run runs each of fs in a thread, and returns the machine when all threads have ended. The seed decides where a core without work looks first,
// and the results of about.
func run(seed uint64, cores int, fs ...func(*thread)) *machine {
	m := &machine{random: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}}
	for i := range cores {
		m.cores = append(m.cores, &core{id: i})
	}
	for i, f := range fs {
		t := &thread{m: m}
		t.resume, _ = iter.Pull(func(yield func(time.Duration) bool) { t.yield = yield; f(t); m.unended-- })
		c := m.cores[i%cores]
		c.queue = append(c.queue, t)
		m.unended++
	}
	for _, c := range m.cores {
		m.schedule(c)
	}
	for len(m.events) > 0 {
		m.step()
	}
	if m.unended > 0 {
		panic("cores: all threads wait")
	}
	return m
}

// step makes the next event happen.
func (m *machine) step() {
	e := heap.Pop(&m.events).(event)
	m.now = e.at
	e.do()
}

func (m *machine) after(d time.Duration, do func()) {
	m.seq++
	heap.Push(&m.events, event{m.now + d, m.seq, do})
}

// schedule runs the next thread of c, or else looks for one.
func (m *machine) schedule(c *core) {
	t := c.next
	if c.next = nil; t == nil && len(c.queue) > 0 {
		t, c.queue = c.queue[0], c.queue[1:]
	}
	if t != nil {
		m.execute(c, t)
		return
	}
	asleep := 0
	for _, o := range m.cores {
		if o.asleep {
			asleep++
		}
	}
	if !c.searching && 2*m.searching >= len(m.cores)-asleep { // enough cores search already
		c.asleep = true
		return
	}
	m.search(c)
}

// execute runs t on c until t parks or ends.
func (m *machine) execute(c *core, t *thread) {
	t.on = c
	switch d, running := t.resume(); {
	case running && d >= 0:
		m.after(d, func() { m.execute(c, t) })
		return
	case running && d == givesWay:
		c.queue = append(c.queue, t)
	}
	m.after(change, func() { m.schedule(c) })
}

func (m *machine) search(c *core) {
	if !c.searching {
		c.searching = true
		m.searching++
	}
	m.after(look, func() {
		order := slices.Clone(m.cores)
		m.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, o := range order {
			if len(o.queue) > 0 {
				t := o.queue[0]
				o.queue = o.queue[1:]
				m.found(c, t)
				return
			}
		}
		m.steal(c, order)
	})
}

// steal takes the thread that would run next on another core. It sleeps first, since that core may run the thread soon.
func (m *machine) steal(c *core, order []*core) {
	for i, o := range order {
		if t := o.next; t != nil {
			m.after(nap, func() {
				if o.next != t {
					m.steal(c, order[i:])
					return
				}
				o.next = nil
				m.counts["stolen"]++
				m.found(c, t)
			})
			return
		}
	}
	if slices.ContainsFunc(order, func(o *core) bool { return o.next != nil || len(o.queue) > 0 }) {
		m.search(c)
		return
	}
	m.searching--
	c.searching, c.asleep = false, true
}

// found ends the search of c, and wakes another core that searches on.
func (m *machine) found(c *core, t *thread) {
	m.searching--
	c.searching = false
	c.queue = append(c.queue, t)
	m.after(m.wakeCore(), func() { m.schedule(c) })
}

// wakeCore wakes a sleeping core unless a core searches, and returns what this takes from the caller.
func (m *machine) wakeCore() time.Duration {
	if m.searching > 0 {
		return 0
	}
	i := slices.IndexFunc(m.cores, func(c *core) bool { return c.asleep })
	if i < 0 {
		return 0
	}
	c := m.cores[i]
	c.asleep, c.searching = false, true
	m.searching++
	m.counts["woken"]++
	m.after(wakeUp, func() { m.search(c) })
	return futex
}

// spend computes for a while.
func (t *thread) spend(d time.Duration) { t.yield(d) }

func (t *thread) write(l *line) { t.access(l, true) }
func (t *thread) read(l *line)  { t.access(l, false) }

// access waits until the core of t has l.
func (t *thread) access(l *line, write bool) {
	t.spend(atomic)
	now := t.m.now
	if h := l.copies[t.on]; now < h.until && (h.write || !write) {
		return
	}
	gone := max(l.free+atomic/2, now+asked)
	end := gone + move - asked
	if l.copies == nil {
		l.copies = map[*core]held{}
	}
	for c, h := range l.copies {
		switch {
		case h.until <= now:
			delete(l.copies, c)
		case write:
			l.copies[c] = held{min(h.until, gone), h.write}
		case h.until == forever:
			l.copies[c] = held{forever, false}
		}
	}
	l.copies[t.on] = held{forever, write}
	if write || !l.read {
		l.free = end
	}
	l.read = !write
	t.spend(end - now)
}

// park waits for a ready.
func (t *thread) park() {
	if t.parked = !t.token; t.parked {
		t.yield(parks)
	}
	t.token = false
}

// ready ends the park of u, which runs next on the core of t, or on a core that steals it.
func (t *thread) ready(u *thread) {
	t.write(&u.channel)
	if !u.parked {
		u.token = true
		return
	}
	u.parked = false
	c := t.on
	if c.next != nil {
		c.queue = append(c.queue, c.next)
	}
	c.next = u
	t.spend(change/2 + t.m.wakeCore())
}

// canSpin is as in runtime/proc.go: another core computes, and no thread waits for this one.
func (t *thread) canSpin() bool {
	busy := 0
	for _, c := range t.m.cores {
		if !c.asleep && !c.searching {
			busy++
		}
	}
	return busy > 1 && t.on.next == nil && len(t.on.queue) == 0
}

// about returns a time within a tenth of d, so that threads do not move in step.
func (t *thread) about(d time.Duration) time.Duration {
	return d*9/10 + time.Duration(t.m.random.Int64N(int64(d)/5+1))
}
