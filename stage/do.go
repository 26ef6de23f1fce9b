package stage

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A task through a stage
//
// The normal way of a Do through one stage:
//
//	enterDo, full, mayInline   the stage may refuse the Do early, or run the handler on the caller    steps 1 to 3
//	put, accept                the task is in the queue, and counts as Arrived and Accepted           steps 4 and 5
//	await                      the caller waits for the answer                                        step 6
//	serve, callHandler         a worker takes the task off the queue, and the handler runs            steps 7 and 8
//	handOn                     the result is the task's, or leads to another try or the next stage    step 9
//	finish, pay                the fate is counted, and the answer ends the wait                      steps 10 and 11
//
// A plain pool would have only put, serve and callHandler. The rest is for refusals, retries, pipes, and for a Do inside a handler.
//
// These words have a fixed meaning:
//
//	room       a full stage has none; a task has room from step 4 until step 10
//	slot       the right to run a handler of the stage, whose number is the width
//	permit     the right to run any handler of the pool, which stages may share
//	ticket     the number of a task in the order of arrival, by which a worker picks the stage that it serves next
//	outsider   a caller that waits for room
//	lent       a task that runs in the slot of a handler that waits for it
//	dues       what a caller must do after it has unlocked the guard: start workers, examine waits
//	sweep      the removal of queued tasks that are gone, after a number of rejections
//	tree       a task with the tasks that its handlers have begun
//
// The steps in full follow, and then a table of the exits. Counts change only while the guard of the pool is held, so that Stats always
// add up.
// This file has the caller's steps 1 to 3 and 6. queue.go has the way into the queue, steps 4 and 5, and the way out of it. unlockAndPay
// in pool.go wakes the worker, serve.go has the worker's steps 7 to 10, and task.go has the end of the task in step 11.
//
//  1. enterDo. If ctx is done, or belongs to a task that has ended (errEnded), the Do fails and nothing is counted. If ctx is a
//     handler's context, the new task is a child: its parent now waits for it.
//  2. full. A stage that has rejected before may reject here (ErrFull, ErrClosed), before the task is allocated. Passing this step reserves
//     nothing, because step 4 decides. The Do of a handler skips this step, because its task may need no room.
//  3. mayInline. If the caller is on the stage's scheduler, no task waits, and a slot and a permit are free, the handler runs on the
//     caller, which then performs steps 8 to 11. If OnPanic is nil, a panic of this handler ends the process, even if the caller would
//     recover it.
//  4. put. A closed stage returns ErrClosed. If there is room, step 5 follows in the same critical section. A full stage that rejects
//     returns ErrFull, unless the task displaces a task of a lower priority. A full stage that waits makes the caller an outsider. If this
//     step fails, no handler has run, and handIn removes the child from its parent. A wait for room that is cancelled or ends with ErrCycle
//     is not counted.
//  5. accept. The task is in the queue, and counts as Arrived and Accepted. If a slot and a permit are free, the call of unlockAndPay that
//     follows wakes or starts a worker. If the scheduler refuses to start the worker, it is a plain goroutine.
//  6. await. The Do waits for the answer. See below for a Do that ends before its task, and for other exits from the queue.
//  7. serve. A worker takes the task off the queue, takes a slot, and unlocks the guard. The task does not begin if it has waited too
//     long for Delay (ErrLate), is marked as gone, or has a context that is done (both Cancelled).
//  8. callHandler. The handler runs without a lock, with the task as its context. If OnPanic is set, a panic becomes the task's error.
//     Otherwise a panic ends the worker, and so does a runtime.Goexit: the task fails with errAbandoned and frees its slot and permit.
//  9. handOn. After an error, Retry may delay the task. A delayed task gives up its slot but keeps its room, and tryAgain puts it at the
//     front of the queue for step 7. Without another try, OnFail runs, still in the slot. After a success in a pipe, the task moves to the
//     next stage (pass), or the worker waits for room there (put), in the slot but without the permit. If the move fails, giveUp ends the
//     task in this stage, although its handler has succeeded.
//  10. finish. The slot is free, the fate is counted, s.admit lets outsiders in, and a Shutdown that waits for the last task resumes.
//  11. pay. After the unlock, t.countDown ends the task. The answer, with the first error of the tree, is given once all children are done.
//
// If a Do ends in step 6, its task stays in the stage:
//   - With a plain ctx that ends (see suspend/context.go), the Do returns the cancellation error and marks the task as gone. If the answer
//     comes at the same moment, the state word of the waiting task decides which of the two the Do returns. A queued task keeps its place
//     until a worker reaches it, or a rejection sweeps the queue, and then counts as Cancelled. If the caller is a handler, asking.examine
//     gives the answer of the queued task at once, so that the parent need not wait. A delayed task returns to the queue at once. A running
//     handler sees its context end, and its result decides the fate. A worker that waits for room in the next stage gives up.
//   - With a Lazily ctx that ends, the Do waits until its task has ended, and then returns the cancellation error, even if the handler
//     succeeds. A queued task is not marked as gone, so no sweep removes it: it counts as Cancelled when a worker reaches it. Delayed
//     tasks and running handlers are treated as with a plain ctx. The wait for room in step 4 is never lazy.
//   - If the task that called Do is killed (suspend.Bound.Kill), await does not return but calls runtime.Goexit. Nothing marks the stage's
//     task as gone or ends its context. A queued task begins in its turn, a running handler runs on, and the answer is dropped. If the
//     killed task runs a handler, as a worker or in step 3, the handler's task fails with errAbandoned, see step 8. Killing an outsider
//     ends its wait for room, as a cancellation does.
//
// A task can leave in these ways, too. The first three rows of the table are no tasks yet, and OnFail is not called for them.
//
//	step   cause                                        error                           counts as
//	1      ctx is done, or its task has ended           the cancellation, or errEnded   nothing
//	2, 4   the stage is full or closed                  ErrFull, ErrClosed              Rejected
//	4      the wait for room is cancelled, or a cycle   the cancellation, or ErrCycle   nothing
//	6      a Close, or the ctx of a Shutdown ends       ErrClosed                       Failed
//	6      a task of a higher priority displaces it     ErrDisplaced                    Late
//	6      handlers wait in a cycle                     ErrCycle                        Failed
//	7      it has waited too long for Delay             ErrLate                         Late
//	7      its context is done                          the cancellation                Cancelled
//	8      the handler panics, and OnPanic is set       the panic, as an error          Failed
//	8      the handler calls runtime.Goexit             errAbandoned                    Failed
//	9      the handler fails, or the move in a pipe     its error                       Failed, and Dropped for an ErrOverload
//
// In step 6 the task is queued, or delayed. It counts as Busy until s.giveUpQueued has called OnFail and given the answer. A task whose
// context is done by then counts as Cancelled, without OnFail. For a cycle, asking.examine selects one queued task of the cycle.
//
// OnFail is called once for each task given up. OnFail is not called if the caller cancelled the task in the queue, or if the handler
// returned the error of its context after the cancellation. If a handler returns another error after its Do has returned, the task fails
// and OnFail is called.
//
// The rules above have limits:
//   - A handler may run forever: Close, and Shutdown once its ctx ends, cancel the contexts of submitted tasks and return, but cannot stop it.
//   - A task may wait forever behind tasks of higher priorities, or with LIFO behind younger tasks. Delay sheds a task only in step 7.
//   - The search for cycles covers Dos and waits for room. It does not cover Each, or waits for children handed in by Begin or Submit.
//   - Tests and a model checker show for small programs that no wake-up is lost and that the counts add up. There is no proof.

// Do implements Flow. If the caller is on the scheduler of the stage, no task waits, and a slot and a permit are free, the handler
// runs on the caller. Such a Do does not return before the handler, even if ctx ends.
//
// A Do that a handler calls with its own context, on its own goroutine, cannot deadlock on the handler's own slot. If a handler of
// this stage waits for the new task, directly or through a chain of Dos, the task needs no room and runs in the slot of that
// handler. If several chains cross, so that each waits for a slot of another, one of the Dos fails with ErrCycle. Waits for
// children handed in by Begin or Submit are not examined.
func (s *Stage[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	// Steps 1 and 2.
	parent, from, err := enterDo(ctx, &s.entry)
	if err != nil {
		return out, err
	}
	if from == nil {
		// Step 3. Here we have a choice: a worker could run the handler, but a switch to it and back takes longer than a short handler.
		if now, ticket := s.mayInline(); ticket != 0 {
			if s.o.Limit != nil {
				defer s.adjustInline()
			}
			return s.inline(ctx, in, parent, now, ticket)
		}
	}
	return ask[In, Out](ctx, &s.entry, in, parent, from)
}

// enterDo does for a Do what enter does for other calls, but does not call p.full for a handler's Do: the new task may need no room,
// and p.put decides.
func enterDo[In any](ctx context.Context, p port[In]) (parent *task, from *core, err error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, nil, err
	}
	if parent, from, err = adopted(ctx); err != nil || from != nil {
		return parent, from, err
	}
	if err = p.full(asFull); err != nil && parent != nil {
		parent.countDown(nil)
	}
	return parent, nil, err
}

func adopted(ctx context.Context) (parent *task, from *core, err error) {
	if parent = taskOf(ctx); parent == nil {
		return nil, nil, nil
	}
	if !parent.adopt() {
		return nil, nil, errEnded
	}
	return parent, parent.here(), nil
}

// taskOf returns the task that ctx belongs to, or nil if there is none.
func taskOf(ctx context.Context) *task {
	if t, ok := ctx.(*task); ok {
		return t
	}
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

func (g *entrance[In, Out]) full(h how) error {
	s := g.s
	if h == always || h == asFull && !s.o.Reject || !s.crowded.Load() || s.priority != nil {
		return nil
	}
	s.pool.guard.Lock()
	switch {
	case s.closed:
		err := s.refuse(s.errs.closed)
		s.pool.guard.Unlock()
		return err
	case s.room():
		s.pool.guard.Unlock()
		return nil
	}
	return s.reject()
}

// mayInline decides whether a Do runs its handler on its caller. If so, mayInline takes a slot and a permit, and returns a ticket,
// which is never 0. While a task waits, mayInline returns 0, so that the Do does not overtake the queue.
func (s *Stage[In, Out]) mayInline() (now int64, ticket uint64) {
	p := s.pool
	if s.batchFunc != nil || s.o.Rate > 0 || !p.onCaller() {
		return 0, 0
	}
	now = p.now()
	p.guard.Lock()
	if !s.closed && s.waiting == 0 && s.taken < s.width && p.running < p.width && s.outside.Len() == 0 && s.room() {
		s.arrived++
		s.accepted++
		s.progress++
		s.taken++
		p.running++
		p.tickets++
		ticket = p.tickets
		s.begun(now, now)
	}
	p.guard.Unlock()
	return now, ticket
}

func (p *Pool) onCaller() bool { return p.inline && suspend.Within(p.on) }

func ask[In, Out any](ctx context.Context, p port[In], in In, parent *task, from *core) (out Out, err error) {
	c, err := handInWithReply[In, Out](ctx, p, in, parent, from, from)
	if err != nil {
		return out, err
	}
	// Step 6.
	return c.reply.await(ctx, &c.task, from)
}

// A call is a task and its reply, in one allocation.
type call[Out any] struct {
	task
	reply reply[Out]
}

// handInWithReply hands in a task with a reply. The last parameter is the stage whose handler will wait for the reply, or nil.
func handInWithReply[In, Out any](ctx context.Context, p port[In], in In, parent *task, from, asks *core) (*call[Out], error) {
	c := new(call[Out])
	c.values, c.parent, c.until = ctx, parent, likeCtx
	c.answer = &c.reply
	if asks != nil {
		c.asked = &asking{from: asks, task: &c.task}
	}
	return c, handIn(ctx, &c.task, p, in, asFull, from)
}

// handIn calls p.put, and removes the child from its parent if p.put fails.
func handIn[In any](ctx context.Context, t *task, p port[In], in In, h how, from *core) (err error) {
	accepted := false
	defer func() { // the deferred function runs even if a method of ctx or a key function panics
		if !accepted && t.parent != nil {
			t.parent.countDown(nil) // t was not accepted, so its parent need not wait for it
		}
	}()
	err = p.put(ctx, t, in, h, from)
	accepted = err == nil
	return err
}

// await waits for the answer to t. If the caller is a handler, await gives back its permit during the wait.
func (r *reply[Out]) await(ctx context.Context, t *task, from *core) (Out, error) {
	if from != nil && t.open.Load() >= 0 {
		from.block(t.asked)
		defer from.goOn(t.asked)
	}
	out, err := r.promise.Await(ctx)
	if err != nil && t.open.Load() >= 0 {
		t.gone.Store(true) // the Do is cancelled, so its task need not begin
		if t.asked != nil {
			t.asked.examine()
		}
	}
	return out, err
}
