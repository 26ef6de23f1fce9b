//go:build explore

package explore_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/testrig/mutation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// The mutants are small primitives. Each is correct, and has several wrong variants, by name.

// A box is an MVar.
type box struct {
	wrong   string
	guard   suspend.Guard
	full    atomicx.Bool
	value   int
	takers  suspend.Queue[int, struct{}]
	putters suspend.Queue[struct{}, int]
}

// in is an operation that waits in a queue with the payload p, unless look returns a result.
type in[T, P any] struct {
	guard *suspend.Guard
	queue *suspend.Queue[T, P]
	p     P
	look  func() (T, bool)
}

func (s in[T, P]) Guard() *suspend.Guard        { return s.guard }
func (s in[T, P]) Enqueue(r suspend.Resumer[T]) { s.queue.Push(r, s.p) }
func (s in[T, P]) Remove(r suspend.Resumer[T])  { s.queue.Remove(r) }

func (s in[T, P]) Try() (v T, ok bool, _ error) {
	v, ok = s.look()
	return v, ok, nil
}

func (b *box) Put(ctx context.Context, v int) error {
	_, err := suspend.Wait[struct{}](ctx, in[struct{}, int]{&b.guard, &b.putters, v, func() (none struct{}, ok bool) {
		if b.full.Load() {
			return none, false
		}
		if b.wrong == "pop, commit, then look" && b.takers.Len() > 0 {
			b.takers.ResumeHead(v, nil)
			return none, true
		}
		if _, ok := b.takers.Resume(v, nil); !ok {
			b.value = v
			b.full.Store(true)
		}
		return none, true
	}})
	return err
}

func (b *box) Take(ctx context.Context) (int, error) {
	if b.wrong == "looks, and then registers without a second look" && !b.full.Load() {
		return suspend.Wait[int](ctx, in[int, struct{}]{&b.guard, &b.takers, struct{}{}, func() (int, bool) { return 0, false }})
	}
	return suspend.Wait[int](ctx, in[int, struct{}]{&b.guard, &b.takers, struct{}{}, b.takeLocked})
}

func (b *box) TryTake() (int, bool) {
	b.guard.Lock()
	defer b.guard.Unlock()
	return b.takeLocked()
}

func (b *box) takeLocked() (v int, ok bool) {
	if !b.full.Load() {
		return 0, false
	}
	v = b.value
	switch {
	case b.wrong == "the putter's value is published, and then its Resume looked at" && b.putters.Len() > 0:
		b.value, _ = b.putters.ResumeHead(struct{}{}, nil)
		return v, true
	case b.wrong == "the putter is not woken":
		b.full.Store(false)
		return v, true
	}
	if b.value, ok = b.putters.Resume(struct{}{}, nil); !ok {
		b.full.Store(false)
	}
	return v, true
}

// permits is a weighted semaphore.
type permits struct {
	wrong   string
	guard   suspend.Guard
	free    int64
	waiters suspend.Queue[struct{}, int64]
}

func (p *permits) Acquire(ctx context.Context, n int64) error {
	var me suspend.Resumer[struct{}]
	_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (none struct{}, ok bool) {
		p.guard.Lock()
		defer p.guard.Unlock()
		if p.waiters.Len() == 0 && p.free >= n {
			p.free -= n
			return none, true
		}
		me = r
		p.waiters.Push(r, n)
		return none, false
	})
	if err != nil {
		p.guard.Lock()
		removed := p.waiters.Remove(me)
		if p.wrong == "a cancelled waiter gives back what it never had" && removed || p.wrong == "the counter is adjusted twice" && !removed && me != (suspend.Resumer[struct{}]{}) {
			p.free += n
		}
		if p.wrong != "the grant loop is not run again after a cancellation" {
			p.grant()
		}
		p.guard.Unlock()
	}
	return err
}

func (p *permits) TryAcquire(n int64) bool {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.free != n { // fails also if there are too many permits
		return false
	}
	p.free -= n
	return true
}

func (p *permits) Release(n int64) {
	p.guard.Lock()
	p.free += n
	p.grant()
	p.guard.Unlock()
}

func (p *permits) grant() {
	for n := p.waiters.Head(); n != nil && *n <= p.free; n = p.waiters.Head() {
		n, resumed := p.waiters.ResumeHead(struct{}{}, nil)
		if resumed || p.wrong == "a cancelled waiter swallows the permit" {
			p.free -= n
		}
		if p.wrong == "one grant for each release" {
			return
		}
	}
}

// A latchkey is a lock.
type latchkey struct {
	wrong   string
	held    atomicx.Bool
	waiting atomicx.Bool
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, struct{}]
}

func (l *latchkey) TryLock() bool {
	if l.wrong == "load and store instead of a swap" {
		if l.held.Load() {
			return false
		}
		l.held.Store(true)
		return true
	}
	return l.held.CompareAndSwap(false, true)
}

// Lock competes for the lock each time it is woken.
func (l *latchkey) LockContext(ctx context.Context) error {
	for {
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		if l.TryLock() {
			return nil
		}
		var locked bool
		var me suspend.Resumer[struct{}]
		_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (none struct{}, ok bool) {
			l.guard.Lock()
			defer l.guard.Unlock()
			if l.wrong == "the flag is set after the second look" {
				locked = l.TryLock()
				l.waiting.Store(true)
			} else {
				l.waiting.Store(true)
				locked = l.wrong != "no second look after the flag is set" && l.TryLock()
			}
			if !locked {
				me = r
				l.waiters.Push(r, struct{}{})
			}
			return none, locked
		})
		switch {
		case locked:
			return nil
		case err != nil:
			l.guard.Lock()
			l.waiters.Remove(me)
			l.guard.Unlock()
			return err
		}
	}
}

func (l *latchkey) Unlock() {
	if l.wrong == "the flag is read before the lock is free" {
		waiting := l.waiting.Load()
		l.held.Store(false)
		if !waiting {
			return
		}
	} else {
		l.held.Store(false)
		if !l.waiting.Load() {
			return
		}
	}
	l.guard.Lock()
	l.waiters.ResumeAll(struct{}{}, nil)
	l.waiting.Store(false)
	l.guard.Unlock()
}

// A mailbox is an inbox whose word and flag are two variables.
type mailbox struct {
	wrong  string
	head   atomicx.Pointer[fifo.Item]
	asleep atomicx.Bool
}

func (b *mailbox) Push(it *fifo.Item) bool {
	if b.wrong == "the flag is read before the push" {
		asleep := b.asleep.Swap(false)
		b.head.Store(it)
		return asleep
	}
	b.head.Store(it)
	return b.asleep.Swap(false)
}

func (b *mailbox) Take() *fifo.Item { return b.head.Swap(nil) }

func (b *mailbox) Sleep() bool {
	if b.wrong == "sleeps without a second look" {
		b.asleep.Store(true)
		return true
	}
	b.asleep.Store(true)
	return b.head.Load() == nil || !b.asleep.CompareAndSwap(true, false)
}

// An event is a promise without a value.
type event struct {
	wrong   string
	set     atomicx.Bool
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, struct{}]
}

func (e *event) wait(ctx context.Context) error {
	look := func() (none struct{}, ok bool) { return none, e.set.Load() }
	_, err := suspend.Wait[struct{}](ctx, in[struct{}, struct{}]{&e.guard, &e.waiters, struct{}{}, look})
	return err
}

func (e *event) fire() {
	switch e.wrong {
	case "the broadcast is not one step":
		for {
			e.guard.Lock()
			_, ok := e.waiters.Resume(struct{}{}, nil)
			e.guard.Unlock()
			if !ok {
				break
			}
		}
		e.set.Store(true)
	case "the broadcast ends with the first that was cancelled":
		e.guard.Lock()
		e.set.Store(true)
		for e.waiters.Len() > 0 {
			if _, ok := e.waiters.ResumeHead(struct{}{}, nil); !ok {
				break
			}
		}
		e.guard.Unlock()
	default:
		e.guard.Lock()
		e.set.Store(true)
		e.waiters.ResumeAll(struct{}{}, nil)
		e.guard.Unlock()
	}
}

func eventProgram(wrong string) func(w *explore.World) {
	return func(w *explore.World) {
		e := &event{wrong: wrong}
		for _, name := range []string{"wait", "wait2"} {
			w.Go(name, func(ctx context.Context) { _ = e.wait(ctx) })
		}
		w.Go("fire", func(context.Context) { e.fire() })
		w.OnIdle(lost)
	}
}

func TestMutants(t *testing.T) {
	for name, m := range map[string]struct {
		program func(wrong string) func(w *explore.World)
		wrongs  []string
	}{
		"mvar": {func(wrong string) func(w *explore.World) {
			return mvarProgram(func() place { return &box{wrong: wrong} })
		}, []string{
			"pop, commit, then look", "looks, and then registers without a second look",
			"the putter's value is published, and then its Resume looked at", "the putter is not woken",
		}},
		"semaphore": {func(wrong string) func(w *explore.World) {
			return semaphoreProgram(func() counter { return &permits{wrong: wrong, free: 2} })
		}, []string{
			"a cancelled waiter swallows the permit", "a cancelled waiter gives back what it never had",
			"the counter is adjusted twice",
		}},
		"semaphore, gated": {func(wrong string) func(w *explore.World) {
			return gatedProgram(func() counter { return &permits{wrong: wrong, free: 2} })
		}, []string{"the grant loop is not run again after a cancellation", "one grant for each release"}},
		"mutex": {func(wrong string) func(w *explore.World) {
			return lockProgram(2, 1, func() lock { return &latchkey{wrong: wrong} })
		}, []string{
			"load and store instead of a swap", "no second look after the flag is set",
			"the flag is set after the second look", "the flag is read before the lock is free",
		}},
		"inbox": {func(wrong string) func(w *explore.World) {
			return inboxProgram(func() inbox { return &mailbox{wrong: wrong} })
		}, []string{"the flag is read before the push", "sleeps without a second look"}},
		"event": {eventProgram, []string{
			"the broadcast is not one step", "the broadcast ends with the first that was cancelled",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wrong := range append([]string{""}, m.wrongs...) {
				for search, c := range map[string]explore.Config{"bounded": with(fine(2), 1), "reduced": with(reduced, 1)} {
					c.Executions = 60_000
					r := explore.Run(c, m.program(wrong))
					switch {
					case wrong == "" && r.Failure != nil:
						t.Errorf("what is right has failed: %v", r.Failure)
					case wrong != "" && r.Failure == nil:
						t.Errorf("%s: %s, not found in %d runs", wrong, search, r.Executions)
					case wrong != "":
						t.Logf("%s: %s, run %d, %s, replay %s", wrong, search, r.Executions, r.Failure.Reason, r.Failure.Replay)
					}
				}
			}
		})
	}
}

// goOn precedes the index of the mutant with which another process must continue.
const goOn = "another process goes on with mutant "

// TestRealMutants runs TestMutated, in a build that has all real mutants in its code. Each can be turned on.
func TestRealMutants(t *testing.T) {
	const is = "\nimport \"github.com/braidgo/braid/internal/atomicx\"\n\nfunc mutated(name string) bool { return atomicx.Is(name) }\n"
	overlay := mutation.Overlay(t, root, realMutants, is, map[string]string{
		"internal/atomicx/mutant.go": "package atomicx\n\nvar mutant string\n\nfunc Mutate(name string) { mutant = name }\n\nfunc Is(name string) bool { return mutant == name }\n",
	})
	mutated := filepath.Join(t.TempDir(), "mutated")
	out, err := exec.Command("go", "test", "-c", "-o", mutated, "-vet=off", "-tags", "explore,mutants", "-overlay", overlay, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for from := "0"; from != ""; {
		mutated := exec.Command(mutated, "-test.v", "-test.run=^TestMutated$", "-test.timeout=30m")
		mutated.Env = append(os.Environ(), "BRAID_FROM="+from)
		out, err := mutated.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(out), goOn)
		from, _, _ = strings.Cut(rest, "\n")
	}
}
