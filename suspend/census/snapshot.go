package census

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/ledger"
)

// A Snapshot is the state of all tasks at one moment. A Snapshot never changes, and it keeps no task and no object alive.
type Snapshot struct {
	At        time.Time
	On        bool       // reports whether the census is on
	Since     time.Time  // the time at which the census was switched on; earlier waits and locks are unknown
	Deadlocks []Deadlock // cycles of tasks that wait for each other
	Tasks     []Task     // sorted: first the waiting tasks, beginning with the longest wait
	Scopes    []Scope    // the open scopes, in the order in which they were opened; their Parents make them a tree
}

// A Task is a live task, or a goroutine without a task that waits or holds something.
type Task struct {
	ID        string  // a name such as "goroutine 18"
	Goroutine int64   // the runtime's number of the goroutine; 0 for a Then
	Scheduler string  // the package, such as "fifo"; "" if unknown, and for a goroutine without a task
	Began     *Origin `json:",omitempty"` // Began is nil if unknown; see the package comment
	Waits     *Wait   `json:",omitempty"` // Waits is nil if the task does not wait in a Braid operation
	Holds     []Hold  `json:",omitempty"`
	Scope     uint64  `json:",omitempty"` // the ID of the innermost Scope of which the task is a member
	Ended     bool    `json:",omitempty"` // the task has ended, but still holds something
}

// An Origin is the call that started a task.
type Origin struct {
	At    Frame
	Since time.Time
}

// A Wait is the wait of a task.
type Wait struct {
	Operation string // the call in the program, such as "workstealing.Pool.Close"
	Primitive string // the wait inside this call, such as "promise.Promise.Await"
	At        Frame  // the line of the call
	Since     time.Time
	For       []Object // one Object for each case of a Select
	MayEnd    bool     // the context may end the wait
	Stack     []Frame
}

// An Object is an object for which a task waits.
type Object struct {
	Name    string
	Wants   uint64   `json:",omitempty"` // the number of permits, if more than 1
	Holders []Holder `json:",omitempty"` // empty if unknown, or if there is no holder
}

// A Holder is a task that holds an object.
type Holder struct {
	Task  string // includes the scheduler, as in "goroutine 18 (fifo)"
	Since time.Time
	At    Frame
	N     uint64 // the number of permits: 1 for a lock, 1<<63-1 for the writer of an RWMutex
	Ended bool   `json:",omitempty"` // the task has ended
	Owes  bool   `json:",omitempty"` // the task of an actor must reply to an Ask, and At is zero
	Name  string `json:",omitempty"` // the actor's name
}

// A Hold is an object that a task holds.
type Hold struct {
	Object  string
	Since   time.Time
	At      Frame
	N       uint64
	Waiting int // the number of waiters for the object
}

// A Deadlock is a cycle of tasks. Each task waits for an object that the next task holds, or for which the next task is an
// earlier waiter.
type Deadlock struct {
	Cycle    []Link
	Behind   int  // the number of other tasks that wait for these tasks, directly or indirectly
	MayEnd   bool // reports whether a context may end one of the waits
	Possible bool // reports whether a wait is for permits, which any task may release, or for an Ask, which any task may answer
}

// A Link is one task of a Deadlock.
type Link struct {
	Task   string
	Waits  Wait
	For    string  // the object of the wait
	Holder *Holder // the holder of the object; a nil Holder means that the next task is an earlier waiter
	Next   string  // the next task
}

// Take returns a Snapshot. Tasks continue to run during Take, so two entries may be from slightly different times. The
// waits and locks of a Deadlock existed at the same time, because Take has found them in two successive readings.
func Take() Snapshot {
	s := Snapshot{At: time.Now()}
	if s.Since, s.On = ledger.Since(); !s.On {
		s.Since = time.Time{}
		return s
	}
	scopes, of := ledger.Scopes()
	tasks, waits := ledger.Read()
	holds := append(ledger.Holds(), ledger.Owed(tasks, waits)...)
	t := taker{
		graph: newGraph(slices.Clone(waits), holds), names: named(),
		tasks: map[ledger.Who]*Task{}, live: map[ledger.Who]bool{}, calls: map[[ledger.Depth]uintptr]call{},
	}
	t.add(tasks, waits, holds)
	for _, x := range t.tasks {
		s.Tasks = append(s.Tasks, *x)
	}
	s.Tasks = append(s.Tasks, t.thens...)
	slices.SortFunc(s.Tasks, func(x, y Task) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), x.since().Compare(y.since()), cmp.Compare(x.Goroutine, y.Goroutine), strings.Compare(x.ID, y.ID))
	})
	t.scopes(&s, scopes, of)
	if slices.ContainsFunc(t.graph.nodes, func(n *node) bool { return n.stuck }) {
		tasks2, waits2 := ledger.Read()
		holds2 := append(ledger.Holds(), ledger.Owed(tasks2, waits2)...)
		s.Deadlocks = t.deadlocks(newGraph(both(waits, waits2, holds, holds2)))
	}
	return s
}

func (t Task) rank() int {
	if t.Waits != nil {
		return 0
	}
	return 1
}

func (t Task) since() time.Time {
	switch {
	case t.Waits != nil:
		return t.Waits.Since
	case t.Began != nil:
		return t.Began.Since
	}
	return time.Time{}
}

// A taker builds a Snapshot.
type taker struct {
	graph *graph
	names extents[string]
	tasks map[ledger.Who]*Task
	thens []Task
	live  map[ledger.Who]bool // tasks that have not ended
	calls map[[ledger.Depth]uintptr]call
}

// resolve returns callOf(pcs), but resolves each stack only once.
func (t *taker) resolve(pcs []uintptr) call {
	var key [ledger.Depth]uintptr
	copy(key[:], pcs)
	c, ok := t.calls[key]
	if !ok {
		c = callOf(pcs)
		t.calls[key] = c
	}
	return c
}

// ended reports whether a task has ended. For a goroutine without a task it always returns false.
func (t *taker) ended(who ledger.Who) bool { return who.Task != 0 && !t.live[who] }

func (t *taker) task(who ledger.Who) *Task {
	x := t.tasks[who]
	if x == nil {
		x = &Task{ID: fmt.Sprintf("goroutine %d", who.Goroutine), Goroutine: who.Goroutine}
		t.tasks[who] = x
	}
	return x
}

// label returns the name of a task with its scheduler.
func (t *taker) label(who ledger.Who) string {
	if who.Goroutine == 0 {
		return "a Then"
	}
	return t.task(who).label()
}

func (t Task) label() string {
	if t.Scheduler != "" && t.Goroutine != 0 {
		return t.ID + " (" + t.Scheduler + ")"
	}
	return t.ID
}

func (t *taker) add(tasks []ledger.Task, waits []ledger.Wait, holds []ledger.Held) {
	for _, l := range tasks {
		t.live[l.Who] = true
		x := t.task(l.Who)
		x.Began = &Origin{t.resolve(l.Stack).at, l.Since}
		x.Scheduler = startedBy(t.resolve(l.Stack).stack)
	}
	for i := range waits { // must precede the next loop, which shows holders with their schedulers
		if scheduler := schedulerOf(&waits[i]); waits[i].Goroutine != 0 && scheduler != "" {
			t.task(waits[i].Who).Scheduler = scheduler
		}
	}
	for i := range waits {
		w := &waits[i]
		if w.Goroutine == 0 {
			t.thens = append(t.thens, Task{ID: "a Then", Scheduler: schedulerOf(w), Waits: t.wait(w)})
		} else {
			t.task(w.Who).Waits = t.wait(w)
		}
	}
	for i := range holds {
		o := &holds[i]
		if o.Owed {
			continue // is shown with the waiter, since a task may have to answer thousands of requests
		}
		for _, h := range o.By {
			if h.Goroutine == 0 || len(h.Stack) == 0 {
				continue // a continuation, and a task that owes the object, is shown with the tasks that wait for the object
			}
			x := t.task(h.Who)
			x.Ended = t.ended(h.Who)
			x.Holds = append(x.Holds, Hold{
				Object: t.heldName(o), Since: h.Since, At: t.resolve(h.Stack).at, N: h.N, Waiting: len(t.graph.objects[o.Addr].waiters),
			})
		}
	}
	for _, x := range t.tasks {
		slices.SortFunc(x.Holds, func(a, b Hold) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Object, b.Object)) })
	}
}

func (t *taker) wait(w *ledger.Wait) *Wait {
	c := t.resolve(w.Stack)
	r := &Wait{Operation: c.operation, Primitive: c.primitive, At: c.at, Since: w.Since, MayEnd: w.MayEnd, Stack: c.stack}
	for _, f := range w.For {
		kind := kindOf(f.Kind)
		if len(w.For) == 1 && f.Addr != 0 && !strings.HasPrefix(c.primitive, "suspend.") {
			kind = receiver(c.primitive)
		}
		o := Object{Name: t.name(f.Addr, kind)}
		if f.Wants > 1 {
			o.Wants = f.Wants
		}
		if held, ok := t.graph.extents.find(f.Addr); ok && f.Addr != 0 {
			o.Name = t.heldName(held.held)
			for i := range held.held.By {
				o.Holders = append(o.Holders, t.holderOf(&held.held.By[i]))
			}
		}
		r.For = append(r.For, o)
	}
	return r
}

func (t *taker) holderOf(h *ledger.Hold) Holder {
	return Holder{Task: t.label(h.Who), Since: h.Since, At: t.resolve(h.Stack).at, N: h.N, Ended: t.ended(h.Who), Owes: len(h.Stack) == 0, Name: h.Name}
}

// receiver returns the type of a method, such as mutex.Mutex for mutex.Mutex.Lock.
func receiver(method string) string {
	if i := strings.LastIndexByte(method, '.'); i > 0 {
		return method[:i]
	}
	return method
}

func (t *taker) name(addr uintptr, kind string) string {
	if n, ok := t.names.find(addr); ok && addr != 0 {
		return fmt.Sprintf("%s %q", kind, n)
	}
	return auto(kind, addr)
}

func (t *taker) heldName(o *ledger.Held) string {
	kind := kindOf(o.Kind)
	if kind == "gate.Gate" { // the Gate of an RWMutex or a Semaphore
		if kind = receiver(t.resolve(o.By[0].Stack).primitive); strings.HasPrefix(kind, "suspend.") || !strings.Contains(kind, ".") {
			kind = "permits"
		}
	}
	return t.name(o.Addr, kind)
}

func (t *taker) deadlocks(g *graph) (all []Deadlock) {
	cycles, behind := g.cycles()
	for i, cycle := range cycles {
		d := Deadlock{Behind: behind[i]}
		for _, l := range cycle {
			x := Link{Task: t.label(l.from.Who), Waits: *t.wait(l.from.Wait), For: t.heldName(l.object.held), Next: t.label(l.to.Who)}
			if l.hold != nil {
				h := t.holderOf(l.hold)
				x.Holder = &h
			}
			d.MayEnd = d.MayEnd || l.from.MayEnd
			d.Possible = d.Possible || l.object.held.Owed || kindOf(l.object.held.Kind) == "gate.Gate"
			d.Cycle = append(d.Cycle, x)
		}
		all = append(all, d)
	}
	return all
}

// schedulerOf returns the package of the scheduler of a wait.
func schedulerOf(w *ledger.Wait) string {
	text := ""
	switch {
	case w.On != nil:
		text = fmt.Sprintf("%T", w.On)
	case w.Executor != nil:
		text = w.Executor.String()
	default:
		return ""
	}
	text, _, _ = strings.Cut(strings.TrimLeft(text, "*"), ".")
	return text
}

// startedBy returns the package of the scheduler whose method Go occurs in a stack.
func startedBy(stack []Frame) string {
	for _, f := range stack {
		if folder, ok := f.library(); ok && strings.HasPrefix(folder, "adapters/") && !strings.Contains(folder, "internal/") {
			return folder[strings.LastIndexByte(folder, '/')+1:]
		}
	}
	return ""
}
