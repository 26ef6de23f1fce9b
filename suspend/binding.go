package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend/sched"
)

// A waiter is the state through which a Resumer resumes a task, a goroutine without a task, or a continuation.
type waiter struct {
	task    Task // never changes; nil in a binding that forbids suspending
	word    word
	watched atomicx.Pointer[registration] // the waiter stores this before it opens the word
}

// A binding ties a goroutine to the Task that parks it, for the duration of one Bind. All its fields but the waiter belong to the
// task.
type binding struct {
	waiter
	switcher sched.Switcher // the task, if it is a Switcher
	slot     any            // the *slot[T] that was made first; without a task, the text of the panic
	slots    *list          // holds the slots of other types
	via      *pulled        // without a task, the Pull whose body uses its caller's binding; with a task, the Pull that the task calls now
	doing    doing
	large    bool // the slots exceed keptSlots or keptSize
	killed   bool // a Kill has not taken effect; set while the task does not run
	shields  shields
	coins    uint32 // unused random bits, see coin
	last     wait
	random   func() uint64 // the scheduler's random source; set by the first call of draw
	// The size is 128 bytes, so that a binding begins at a cache line.
}

// A doing says whether the goroutine is in a part of a suspension that allows no other.
type doing uint8

const (
	elsewhere doing = iota
	inBlock         // the block of a Suspend is running
	inPark          // the Park method of a task that is not a Switcher is running, until the wait has ended
)

// A shields says which Shields there are around a binding. The body of a Pull has Shields of its own, which stay with it between two calls
// of next, also if it uses its caller's binding.
type shields uint8

const (
	own  shields = 1 << iota // a Shield on the same goroutine
	lent                     // with a task that Bind has bound in the body of a Pull: a Shield around the call of next
)

// A wait describes the last suspension of a binding. If the word still has the status recorded here, the next wait with the same
// context need not call arm.
type wait struct {
	ctx    context.Context // is nil if the context's Done channel may change or its type is not comparable
	done   <-chan struct{} // the Done channel that Resume checks, or nil
	status state
}

// unarmed is the status of a wait while its registration may cancel nothing. No word has it.
const unarmed = cancelled + 1

func newBinding(t Task) *binding {
	b := &binding{waiter: waiter{task: t}}
	b.switcher, _ = t.(sched.Switcher)
	return b
}

// check panics if the calling task must not suspend.
func (b *binding) check() {
	if b.doing == inBlock {
		panic("suspend: Suspend inside block")
	}
	if b.task == nil {
		panic(b.slot)
	}
}

// armed reports whether a wait with ctx can begin without a call of arm, and returns the state of the word. It calls no method of
// ctx.
func (b *binding) armed(ctx context.Context) (s state, ok bool) {
	if b == nil || b.doing == inBlock {
		return 0, false
	}
	s = b.word.load()
	return s, s.status() == b.last.status && ctx == b.last.ctx
}

// A registration with a context cancels the waiter's suspension when the context ends. A task keeps its last registration, so that
// its next wait with the same context need not register again.
type registration struct {
	b       *waiter
	node    cancelctx.Node // linked into the list of a context of package cancel
	foreign *foreign       // is nil for a context of package cancel; only the task uses this field

	heirs heirs
	last  *heirs // the last heir of the wait that began with the state wait; only the waiter uses these two fields
	wait  state
}

// A foreign belongs to a registration with a context of any other package, which has no list.
type foreign struct {
	done <-chan struct{}
	stop func() bool
}

// A pulled is the state of a call of Pull. The body, which calls seq, runs on a separate goroutine. The caller of next or stop
// stores its binding here, so that the body can suspend the caller's task.
type pulled struct {
	busy  atomicx.Bool // a call of next or stop is running
	bound *binding     // the binding at the caller's place, during the call; see lender
	calls *pulled      // the Pull that the body calls now, if the body uses its caller's binding
	body  *place       // the body's place in the table, from its begin to its end
	id    int64        // the body's goroutine; 0 before the body begins
	by    int64        // the caller's goroutine, which the ledger needs
}

// A list links the further slots of a binding, or the further nodes of a slot.
type list struct {
	x    any
	next *list
}

func (l *list) len() (n int) {
	for ; l != nil; l = l.next {
		n++
	}
	return n
}
