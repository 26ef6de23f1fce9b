package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
)

// Then performs op without a waiting task. It calls k once with the result, as a callback of on, when op has been performed, or when ctx is
// done first or already. k never runs before Then returns on the calling goroutine, and never before the wait for op has begun. k must
// not suspend. The rest of a cancelled op is removed on on, before k. If on is closed and refuses the callback, k runs on a goroutine, so no
// result is lost. An executor that is a Holder waits for k before it ends.
func Then[T any](ctx context.Context, op Op[T], on Executor, k func(T, error)) {
	if on == nil || k == nil {
		panic("suspend: Then without an executor or a continuation")
	}
	t := &continuation[T]{ctx: ctx, on: on, k: k, winner: none, release: holdOn(on)}
	t.task = t
	if op.event != nil {
		t.prepared = op.event.prepare(timersOf(on))
		t.legs = t.prepared.arms(t.first[:0])
	}
	returned := false
	defer func() {
		if !returned { // ctx or a level has panicked
			t.unwatch()
			t.letGo()
		}
	}()
	t.begin()
	returned = true
	t.publish()
}

// A continuation is a task that never runs and never parks: an Unpark only submits k. The resumer that ends it, -R>, and the caller that
// begins it, -S>, meet in its state. The second one submits.
//
//	0      -S> begun            nothing to submit yet
//	0      -R> ended            while it is begun
//	begun  -R> begun|ended      and this resumer submits
//	ended  -S> begun|ended      and Then submits
type continuation[T any] struct {
	waiter
	ctx      context.Context
	end      end // of ctx
	on       Executor
	k        func(T, error)
	release  func() // of on, if on is a Holder
	prepared prepared[T]
	legs     []leg
	first    [1]leg // where the first is listed
	reg      registration
	winner   int  // performed without waiting
	waited   bool // legs are enqueued
	prepares bool // some of legs are prepared
	state    atomicx.Uint32
}

const (
	begun uint32 = 1 << iota
	ended
)

// Park is here for the sake of the Task interface.
func (t *continuation[T]) Park() { panic("suspend: a continuation does not park") }

// Unpark is called by the caller that moves the word.
func (t *continuation[T]) Unpark() {
	if t.state.Or(ended) == begun { // the first time: a context that ends later moves the next generation
		t.submit()
	}
}

func (t *continuation[T]) begin() {
	v, _ := viewOf(t.ctx)
	e := v.end()
	t.end = e
	began := t.word.open(openToContext)
	if e != (end{}) {
		t.reg.b = &t.waiter
		t.watched.Store(&t.reg)
		t.watch(t.ctx, e)
		if e.over(t.ctx) {
			if t.word.cancel(began) {
				t.Unpark()
			} // or it has been cancelled by the registration
			return
		}
	}
	for _, l := range t.legs {
		t.prepares = t.prepares || l.prepares
	}
	if t.prepares {
		pin(t.legs)
	}
	t.look(began)
}

// look performs one of the legs, or makes all of them wait.
func (t *continuation[T]) look(began state) {
	if t.prepares {
		prepare(t.legs)
	}
	var guardsBuf [4]*Guard
	guards := guardsOf(t.legs, guardsBuf[:0])
	var look order
	if len(t.legs) > 1 {
		look = order{drawFor(t.on), true}
	}
	t.winner = begin(t.legs, guards, look, waiting{&t.waiter, began, t.end.done})
	t.waited = t.winner == none
	if !t.waited && t.word.withdraw(began) { // or it is cancelled, and the winner dominates
		t.Unpark()
	}
}

// publish is called when the wait of the continuation has begun. It may have ended by then.
func (t *continuation[T]) publish() {
	if t.state.Or(begun)&ended != 0 {
		t.submit()
	}
}

func (t *continuation[T]) submit() {
	if t.on.Execute(t.finish) != nil {
		go t.finish()
	}
}

// letGo ends the hold on the executor.
func (t *continuation[T]) letGo() {
	if t.release != nil {
		t.release()
	}
}

// finish runs on the executor. The result comes first, since the release of the other legs may call a context, which may panic.
func (t *continuation[T]) finish() {
	over := true
	defer func() {
		if over {
			defer t.letGo()
			t.legs, t.first = nil, [1]leg{}
			t.unwatch() // last but one, as it may call a foreign context
		}
	}()
	won := t.winner
	if t.waited {
		won = collect(t.legs)
	}
	if t.prepares && again(t.legs, won) {
		release(t.legs, won)
		t.again()
		over = false
		return
	}
	if t.waited {
		defer release(t.legs, won)
	}
	k, ctx, prepared := t.k, t.ctx, t.prepared
	t.k, t.ctx, t.prepared, t.on = nil, nil, nil, nil // Resumers may be kept
	if won == none {
		var zero T
		k(zero, cancellation(ctx))
		return
	}
	v, err, _ := prepared.result()
	k(v, err)
}

// again begins anew, on the executor, since one of the legs asks for another look. The word is in the next generation: open, or cancelled by
// now. A canceller has set ended before, which is cleared here, or sets it afterwards. No resumer can, as no Resumer of this generation
// is out yet.
func (t *continuation[T]) again() {
	t.winner, t.waited = none, false
	t.state.Store(0)
	began := t.word.load()
	if began.status() == openToContext && t.end != (end{}) && t.end.over(t.ctx) {
		t.word.cancel(began) // or it has been cancelled by the registration
		began = began.with(cancelled)
	}
	if began.status() == openToContext {
		t.look(began)
	} else {
		t.Unpark()
	}
	t.publish()
}
