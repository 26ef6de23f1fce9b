package suspend

import (
	"context"
	"reflect"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
)

// Then performs op without a waiting task. It calls k once with the result, as a callback of on, when op has been performed, or when ctx is
// done first or already. k never runs before Then returns on the calling goroutine, and never before the wait for op has begun. k must
// not suspend. The rest of a cancelled op is removed on on, before k. If on is closed and refuses the callback, k runs on a goroutine, so no
// result is lost. An executor that is a Holder waits for k before it ends.
func Then[T any](ctx context.Context, op Op[T], on Executor, k func(T, error)) {
	newContinuation(op, on, k).arm(ctx)
}

// A continuation is a waiter that never runs and never parks: an Unpark calls k. It goes through rounds, of one wait each.
// A resumer or a context, -R>, that ends a round meets the goroutine that begins it, -S>, in the state of the round. The
// second of the two submits.
//
//	0           -S> roundBegun              nothing to submit yet
//	0           -R> roundEnded              before the round has begun
//	roundBegun  -R> roundBegun|roundEnded   and this resumer submits
//	roundEnded  -S> roundBegun|roundEnded   and the goroutine that begins it submits
//
// Invariant: roundEnded is set only if the word is past the wait of the round, or the context is done. For an Unpark may be late: a context
// that has cancelled the word between two rounds ends the second, which finds that context done, too.
type continuation[T any] struct {
	waiter
	ctx      context.Context
	end      end // identifies ctx
	on       Executor
	k        func(T, error)
	release  func() // ends the hold of on, if on is a Holder
	submit   func() // finish
	result   result[T]
	legs     []leg
	first    [1]leg // where the first is listed
	reg      registration
	winner   int            // performed without waiting
	waited   bool           // legs are enqueued
	prepares bool           // some of legs are prepared
	state    atomicx.Uint64 // the state in which the word began the round; and, in place of the status, these
}

const (
	roundBegun uint64 = 1 << iota
	roundEnded
)

func newContinuation[T any](op Op[T], on Executor, k func(T, error)) *continuation[T] {
	if on == nil || k == nil {
		panic("suspend: Then without an executor or a continuation")
	}
	t := &continuation[T]{on: on, k: k}
	t.task, t.submit = t, t.finish
	t.reg.b = &t.waiter
	t.watched.Store(&t.reg)
	if op.performable != nil {
		t.legs, t.result = op.begin(timersOf(on), t.first[:0])
	}
	for _, l := range t.legs {
		t.prepares = t.prepares || l.prepares
	}
	return t
}

// Park implements Task.
func (t *continuation[T]) Park() { panic("suspend: a continuation does not park") }

// Spawner is for Resumer.Spawner.
func (t *continuation[T]) Spawner() Spawner { return timersOf(t.on) }

// Unpark implements Task. It is owed by the goroutine that moves the word.
func (t *continuation[T]) Unpark() {
	for {
		round := t.state.Load()
		if round&roundEnded != 0 {
			return
		}
		if t.state.CompareAndSwap(round, round|roundEnded) {
			if round&roundBegun != 0 {
				t.execute()
			}
			return
		}
	}
}

// arm begins to perform the operation.
func (t *continuation[T]) arm(ctx context.Context) {
	begun := false
	defer t.giveUpUnless(&begun)
	t.ctx, t.end = ctx, endOf(ctx)
	t.release = holdOn(t.on)
	if t.prepares {
		pin(t.legs)
	}
	t.begin()
	begun = true
	t.publish()
}

// giveUpUnless is deferred around begin: ctx, a level or a Prepare may panic.
func (t *continuation[T]) giveUpUnless(begun *bool) {
	if !*begun {
		defer letGo(t.release)
		t.release = nil
		if t.prepares {
			stopOthers(t.legs, none)
		}
		t.unwatch()
	}
}

// begin begins a round.
func (t *continuation[T]) begin() {
	began := t.word.open(openToContext)
	t.state.Store(uint64(began.with(0))) // after the word: or an Unpark that is late could find it ended
	t.winner, t.waited = none, false
	if ledger.On() {
		t.record(began)
	}
	if e := t.end; e != (end{}) {
		t.watch(t.ctx, e)
		if e.over(t.ctx) {
			t.word.cancel(began) // the registration may have cancelled it, but its Unpark met the state of the round before
			t.Unpark()
			return
		}
	}
	if t.prepares {
		prepare(t.legs)
	}
	var guardsBuf [4]*Guard
	guards := guardsOf(t.legs, guardsBuf[:0])
	var look order
	if len(t.legs) > 1 {
		look = order{drawFor(t.on), true}
	}
	t.winner = enqueueAll(t.legs, guards, look, &t.waiter, began, t.end.done)
	t.waited = t.winner == none
	if !t.waited && t.word.withdraw(began) { // a cancelled wait has its Unpark already, and the winner counts
		t.Unpark()
	}
}

// publish is called when the round has begun. It may have ended by then.
func (t *continuation[T]) publish() {
	if t.state.Or(roundBegun)&roundEnded != 0 {
		t.execute()
	}
}

func (t *continuation[T]) execute() {
	if t.on.Execute(t.submit) != nil {
		go t.finish()
	}
}

func letGo(release func()) {
	if release != nil {
		release()
	}
}

// finish runs on the executor, when the round has ended. It calls k last. A Drop may panic before, and a context may exit, but
// k still gets its result.
func (t *continuation[T]) finish() {
	won := t.winner
	if t.waited {
		won = collect(t.legs)
	}
	if t.prepares && wantsAgain(t.legs, won) {
		begun := false
		defer t.giveUpUnless(&begun)
		stopOthers(t.legs, won)
		t.begin()
		begun = true
		t.publish()
		return
	}
	if ledger.On() {
		t.took(won)
	}
	ctx, k, result := t.ctx, t.k, t.result
	defer letGo(t.release)
	defer func() {
		t.ctx, t.end, t.release, t.k, t.result, t.on, t.legs, t.first = nil, end{}, nil, nil, nil, nil, nil, [1]leg{} // Resumers may be kept
		if won == none {
			var zero T
			k(zero, cancellation(ctx))
			return
		}
		v, err, _ := result.result()
		k(v, err)
	}()
	defer t.unwatch() // calls a foreign context, which may panic
	if t.waited || t.prepares {
		stopOthers(t.legs, won)
	}
}

// holdOn holds on for a Then, if on can be held.
func holdOn(on Executor) (release func()) {
	if h, ok := asOf[Holder](on); ok {
		if release, err := h.Hold(); err == nil {
			return release
		}
	}
	return nil
}

// record records a round of a continuation. It names the executor and does not keep it.
//
//go:noinline
func (t *continuation[T]) record(began state) {
	w := waitOf(&t.waiter, began, t.end != (end{}))
	w.On, w.Executor, w.For = nil, reflect.TypeOf(t.on), objectsOf(t.legs)
	ledger.ThenWaits(t, w)
}

// took says that the leg that has won, if any, was performed: its Source may leave the caller with a lock.
//
//go:noinline
func (t *continuation[T]) took(won int) {
	if won != none {
		t.legs[won].took(ledger.Then(reflect.ValueOf(t.k).Pointer()))
	}
}
