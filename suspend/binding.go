package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
)

// A waiter can be suspended: a task, a goroutine without one, or a continuation.
type waiter struct {
	task    Task // never changes; nil: suspending is forbidden here
	word    word
	watched atomicx.Pointer[registration] // written by the waiter, before it opens the word to it
}

// A binding ties a goroutine to the Task that parks it, for the extent of one Bind. All of it but the waiter belongs to the
// task.
type binding struct {
	waiter
	switcher Switcher // the task, if it is one
	slot     any      // a *slot[T], of the T that was waited for first; without a task: the text of the panic
	slots    *list    // slots of other types
	via      *pulled  // a body of Pull has it: the binding of the caller of next counts instead
	blocked  bool     // block is running
	large    bool     // the slots are more than are kept
	killed   bool     // a Kill has not taken effect yet; the scheduler writes it while the task does not run
	shielded bool     // no Kill takes effect, see Shield; like killed
	coins    uint32   // random bits that are left, see coin
	last     wait
	random   func() uint64 // belongs to the task's scheduler; set by the first draw
	// 128 bytes: it begins at a cache line then
}

// A wait is left behind by the last suspension of a binding: with this context, a word of this status is open.
type wait struct {
	ctx    context.Context // stays nil if its Done may change, or its type cannot be compared
	done   <-chan struct{} // stays nil if nothing called Done
	status state
}

func newBinding(t Task) *binding {
	b := &binding{waiter: waiter{task: t}}
	b.switcher, _ = t.(Switcher)
	return b
}

// check panics where suspending is a mistake.
func (b *binding) check() {
	if b.blocked {
		panic("suspend: Suspend inside block")
	}
	if b.task == nil {
		panic(b.slot)
	}
}

// armed reports whether a wait with ctx can begin with the word as it is, and returns its state. It does not call ctx.
func (b *binding) armed(ctx context.Context) (s state, ok bool) {
	if b == nil || b.blocked {
		return 0, false
	}
	s = b.word.load()
	return s, s.status() == b.last.status && ctx == b.last.ctx
}

// A registration of a bound task with a context cancels the suspension of the task when the context ends. A task keeps the
// registration of the last such context, to save the next wait with it a registration.
type registration struct {
	b       *waiter
	node    cancelctx.Node // linked in a context of package cancel
	foreign *foreign       // only the task uses it; nil for a context of package cancel
}

// A foreign context has no list.
type foreign struct {
	done <-chan struct{}
	stop func() bool
}

// A pulled is a sequence whose body runs on a separate goroutine. The caller of next leaves its binding there, so that the
// body can suspend the caller's task.
type pulled struct {
	busy  atomicx.Bool // next or stop runs
	bound *binding     // belongs to the caller
	id    int64        // the goroutine of the body, once it has begun
	by    int64        // the caller's goroutine; the ledger needs it
}

// A list holds a task's objects of each type but one.
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
