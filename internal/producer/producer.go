// Package producer runs a sequence in a task of its own. A loop that ranges over a sequence waits for the next value, even if
// something else is ready that the loop also wants, such as a result. With a Producer the loop waits for both in a Select.
package producer

import (
	"context"
	"iter"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Producer runs a sequence in a new task of its reader's scheduler. The reader is the task that has called Start, and only the
// reader may call the methods. The sequence runs only from a Request until it has its next value. Then it is paused in its yield.
// It therefore runs in parallel with the reader only if the reader does something else after a Request, before the value has arrived.
type Producer[T any] struct {
	requests  *chanx.Chan[struct{}]
	values    *chanx.Chan[Next[T]] // closed at the end of the sequence
	requested bool                 // a Request has not been answered
	rethrown  bool
	task      *task
	ended     promise.Promise[outcome.Outcome] // filled before values is closed
}

// Start starts the task of seq. The reader must call Stop.
func Start[T any](seq iter.Seq2[T, error]) *Producer[T] {
	p := &Producer[T]{requests: chanx.New[struct{}](1), values: chanx.New[Next[T]](1), task: &task{on: suspend.Here()}}
	run := func() { outcome.Of(func() { p.run(seq) }, p.end) }
	if p.task.on.Go(run) != nil { // the scheduler is closed, but the reader still runs
		p.task.on = suspend.Goroutines
		_ = suspend.Goroutines.Go(run)
	}
	return p
}

func (p *Producer[T]) run(seq iter.Seq2[T, error]) {
	p.task.begin()
	suspend.Bind(p.task, func() {
		if !p.pause() {
			return
		}
		for v, err := range seq {
			ledger.Gave(p.values)                          // the reader does not wait for the sequence any more
			_, _ = p.values.TrySend(Next[T]{v, err, true}) // has room, since the reader has received the value before
			if !p.pause() {
				return
			}
		}
	})
}

// pause waits for the next Request. It returns false after a Stop.
func (p *Producer[T]) pause() (requested bool) {
	p.task.keepWait(func() { // Stop closes p.requests to end this wait
		_, err := p.requests.Recv(context.Background())
		requested = err == nil
	})
	if requested {
		ledger.Owes[Producer[T]](p.values)
	} else {
		p.task.letWait()
	}
	return requested
}

func (p *Producer[T]) end(o outcome.Outcome) {
	if p.task.exited && o.Exited() { // Stop has ended a wait of the sequence
		o = outcome.Outcome{}
	}
	ledger.Gave(p.values)
	_ = p.ended.Fill(o)
	_ = p.values.Close()
}

// Request requests the next value. It has no effect if the previous Request has not been answered.
func (p *Producer[T]) Request() {
	if !p.requested {
		p.requested = true
		_, _ = p.requests.TrySend(struct{}{})
	}
}

// A Next is the next pair of a sequence. OK is false at the end of the sequence.
type Next[T any] struct {
	Value T
	Err   error
	OK    bool
}

// NextOp returns an Op that waits for the answer to a Request. If the sequence has panicked or exited, the reader then does the
// same.
func (p *Producer[T]) NextOp() suspend.Op[Next[T]] {
	return suspend.Map(p.values.RecvOp(), func(n Next[T], err error) (Next[T], error) {
		p.requested = false
		if err != nil {
			p.rethrow()
		}
		return n, nil
	})
}

// Stop ends the sequence and waits until its task has ended. A value that was requested is dropped. If the sequence is paused, it
// ends as after a break. If it waits in an operation of this module, the operation has no effect, and the task exits by
// runtime.Goexit, so that the deferred functions of the sequence run; they may wait. If the operation has just had its effect, the task
// exits in its next wait or in its yield. Otherwise Stop waits until the sequence reaches its yield or such a wait. If the sequence
// panics, the reader does the same.
func (p *Producer[T]) Stop() {
	p.task.endWait(func() { _ = p.requests.Close() })
	_, _ = p.ended.Await(context.Background())
	p.rethrow()
}

func (p *Producer[T]) rethrow() {
	if o, _, _ := p.ended.Try(); !p.rethrown {
		p.rethrown = true
		o.Rethrow()
	}
}
