package suspend

import (
	"context"
	"reflect"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend/sched"
)

// Then performs op without a waiting task. It calls k once, as a callback of on, with the result of op, or with the cancellation
// error if ctx ends first or has already ended. k never runs on the calling goroutine before Then has returned, and never before
// the wait for op has begun. k must not suspend. The callback removes the waiters of a cancelled op before it calls k. If on is
// closed and refuses the callback, k runs on a new goroutine, so that no result is lost. An executor that is a Holder waits for k
// before it ends. If on is a node of a simulation that crashes, Then ends the wait like a cancellation, and k is not called.
func Then[T any](ctx context.Context, op Op[T], on Executor, k func(T, error)) {
	newContinuation(op, on, k).arm(ctx)
}

// A continuation is a waiter without a task. It never parks, and its Unpark leads to the call of k. It goes through rounds of one
// wait each. The goroutine that begins a round (-S>) and the resumer or context that ends it (-R>) meet in the field state. The
// second of the two submits the callback.
//
//	0           -S> roundBegun              there is nothing to submit yet
//	0           -R> roundEnded              the round has not begun yet
//	roundBegun  -R> roundBegun|roundEnded   this resumer submits
//	roundEnded  -S> roundBegun|roundEnded   the goroutine that begins the round submits
//
// Invariant: roundEnded is set only if the word is past the wait of the round, or the context has ended. An Unpark may be late: if
// a context cancels the word between two rounds, its Unpark may end the second round, which then finds that the context has ended.
type continuation[T any] struct {
	waiter
	ctx      context.Context
	end      end // the event that ends ctx
	on       Executor
	k        func(T, error)
	release  func() // releases the scheduler, if the executor is a Holder
	submit   func() // the method value t.finish
	result   result[T]
	legs     []leg
	first    [1]leg // the backing array for a single leg
	reg      registration
	winner   int            // the leg that was performed without waiting, or none
	waited   bool           // the legs are queued
	prepares bool           // some legs have a Preparer
	crashed  atomicx.Bool   // k is not called
	state    atomicx.Uint64 // the word at the beginning of the round, with the flags below as its status
}

const (
	roundBegun uint64 = 1 << iota
	roundEnded
	roundFinished // finish has begun: a crash of the executor may call it, too
)

func newContinuation[T any](op Op[T], on Executor, k func(T, error)) *continuation[T] {
	if on == nil || k == nil {
		panic("suspend: Then with a nil Executor or a nil function")
	}
	t := &continuation[T]{on: on, k: k}
	t.task, t.submit = t, t.finish
	t.reg.b = &t.waiter
	t.watched.Store(&t.reg)
	if op.performable != nil {
		t.legs, t.result = op.expand(timersOf(on), t.first[:0])
	}
	for _, l := range t.legs {
		t.prepares = t.prepares || l.prepares
	}
	return t
}

// Park implements Task.
func (t *continuation[T]) Park() {
	panic("suspend: Park called on the Task of a Then, which never parks")
}

// Spawner returns the scheduler for Resumer.Spawner.
func (t *continuation[T]) Spawner() Spawner { return timersOf(t.on) }

// Unpark implements Task. The goroutine that changes the word must call it.
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
	if c, ok := asOf[crasher](t.on); ok {
		t.endAtCrash(c)
	}
	if t.prepares {
		pin(t.legs)
	}
	t.beginRound()
	begun = true
	t.markBegun()
}

// giveUpUnless cleans up unless *begun is true. It is deferred, since ctx, a level or a Prepare may panic.
func (t *continuation[T]) giveUpUnless(begun *bool) {
	if !*begun {
		defer letGo(t.release)
		t.release = nil
		if t.prepares {
			stopOthers(t.legs, none)
		}
		t.unregister()
	}
}

// beginRound opens the word for a round, and tries or queues the legs.
func (t *continuation[T]) beginRound() {
	began := t.word.open(openToContext)
	t.state.Store(uint64(began.with(0))) // an earlier Unpark finds the previous round ended and does nothing
	t.winner, t.waited = none, false
	if ledger.On() {
		t.record(began)
	}
	if t.crashed.Load() {
		t.word.cancel(began)
		t.Unpark()
		return
	}
	if e := t.end; e != (end{}) {
		t.register(t.ctx, e)
		if e.reached(t.ctx) {
			t.word.cancel(began) // the registration may have cancelled the word, but its Unpark found the state of the previous round
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
	if t.waited && t.word.isCancelled(began) { // perhaps before the legs had named their heirs; finish removes the legs later
		for _, h := range t.reg.appendHeirs(nil) {
			h.Inherit()
		}
	}
	if !t.waited && t.word.withdraw(began) { // after a cancellation Unpark was already called, and the winner still counts
		t.Unpark()
	}
}

// markBegun marks the round as begun. If the round has already ended, markBegun submits the callback.
func (t *continuation[T]) markBegun() {
	if t.state.Or(roundBegun)&roundEnded != 0 {
		t.execute()
	}
}

// A crasher is a scheduler that may end at any time without its tasks, as a node of a simulation does when it crashes. A crash first
// calls f of each OnCrash, unless stop has been called before, and then each leave. So all waiters of the scheduler end before one of
// them leaves its line, and none of them is granted what another has left. If the scheduler has crashed, OnCrash calls f and leave.
// None of the functions suspends. A Then ends its wait when its executor crashes, and its callback is dropped.
type crasher interface {
	OnCrash(f func() (leave func())) (stop func())
}

// endAtCrash makes a crash of the executor end the wait. If the executor has crashed, the wait ends when it begins.
func (t *continuation[T]) endAtCrash(c crasher) {
	release := t.release
	stop := c.OnCrash(func() (leave func()) {
		t.crashed.Store(true)
		cancelled := t.word.cancelAny()
		return func() {
			if cancelled {
				t.Unpark()
			}
			t.finish() // the executor may have dropped the callback; if the round has not ended, finish does nothing
		}
	})
	t.release = func() {
		stop()
		letGo(release)
	}
}

// claimFinish reports whether the caller must finish the round, because it has ended, and nobody else does so.
func (t *continuation[T]) claimFinish() bool {
	for {
		round := t.state.Load()
		if round&(roundBegun|roundEnded|roundFinished) != roundBegun|roundEnded {
			return false
		}
		if t.state.CompareAndSwap(round, round|roundFinished) {
			return true
		}
	}
}

func (t *continuation[T]) execute() {
	if t.crashed.Load() {
		t.finish()
		return
	}
	if t.on.Execute(t.submit) != nil {
		go t.finish()
	}
}

func letGo(release func()) {
	if release != nil {
		release()
	}
}

// finish runs on the executor after the round has ended. It defers the call of k, so that k gets its result even if a Drop panics
// or a method of ctx exits the goroutine.
func (t *continuation[T]) finish() {
	if !t.claimFinish() {
		return
	}
	won := t.winner
	if t.waited {
		won = collect(t.legs)
	}
	if t.prepares && wantsAgain(t.legs, won) {
		begun := false
		defer t.giveUpUnless(&begun)
		stopOthers(t.legs, won)
		t.beginRound()
		begun = true
		t.markBegun()
		return
	}
	if preempt.On() {
		t.took(won)
	}
	ctx, k, result := t.ctx, t.k, t.result
	if t.crashed.Load() {
		k = nil
	}
	defer letGo(t.release)
	defer func() {
		t.ctx, t.end, t.release, t.k, t.result, t.on, t.legs, t.first = nil, end{}, nil, nil, nil, nil, nil, [1]leg{} // a Resumer may retain t
		switch {
		case k == nil:
			return
		case won == none:
			var zero T
			k(zero, cancellation(ctx))
			return
		}
		v, err, _ := result.result()
		k(v, err)
	}()
	defer t.unregister() // calls a foreign context, which may exit the goroutine
	if t.waited || t.prepares {
		stopOthers(t.legs, won)
	}
}

// holdOn holds the scheduler for a Then, if the executor is a Holder.
func holdOn(on Executor) (release func()) {
	if h, ok := asOf[sched.Holder](on); ok {
		if release, err := h.Hold(); err == nil {
			return release
		}
	}
	return nil
}

// record records a round of the continuation. The record names the type of the executor and does not retain the executor.
//
//go:noinline
func (t *continuation[T]) record(began state) {
	w := waitOf(&t.waiter, began, t.end != (end{}))
	w.On, w.Executor, w.For = nil, reflect.TypeOf(t.on), objectsOf(t.legs)
	ledger.ThenWaits(t, w)
}

// took records that the winning leg was performed, since its Source may leave the caller with a lock.
//
//go:noinline
func (t *continuation[T]) took(won int) {
	if won != none {
		t.legs[won].took(ledger.Then(reflect.ValueOf(t.k).Pointer()))
	}
}
