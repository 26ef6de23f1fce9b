//go:build !braid_portable

package eventloop

import (
	"context"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/suspend"
)

// A ring performs the operations of Files with io_uring, for one reactor. Any task or goroutine may queue an operation.
// Once per turn, the reactor submits the queue with one system call, and resumes the tasks whose operations have
// completed. The epoll instance watches the ring, so that a completion ends the reactor's sleep.
//
// The states of an op: -T> is a step of its task, -R> of the reactor.
//
//	fresh     -T> queued      the wait begins
//	queued    -R> submitted   a place is free
//	queued    -T> done        cancelled before the system has taken it
//	submitted -R> done        the system has completed it
//	submitted -T> cancelling  cancelled; the reactor submits a cancellation to the system
//	cancelling -R> done       the system has completed or cancelled it
//
// Invariant: while an op is submitted or cancelling, the system may use its buffer, and the op occupies a place. The
// task waits until the op is done, even after a cancellation. Debt: a task that queues an op or a cancellation must
// poke the reactor.
type ring struct {
	r *reactor
	uring
	guard   suspend.Guard
	queue   opQueue
	cancels []uint64 // places of the ops that the system has to cancel
	places  [ringPlaces]*op
	free    []uint64 // unused places
	closed  bool
}

// ringPlaces is the maximum number of operations that are submitted and not completed. The completion ring has room for
// two completions of each operation: one of the operation, and one of its cancellation.
const ringPlaces = 256

const noPlace = ^uint64(0) // marks a cancellation, which occupies no place

// An op is one operation of a File, and the suspend.Source of the wait for it.
type op struct {
	g *ring
	sqe
	p []byte // the buffer of the sqe; it is on the heap, because the op is

	// g.guard protects the fields below.
	state  opState
	next   *op
	res    int32
	waiter suspend.Resumer[int32]
}

type opState uint8

const (
	fresh opState = iota
	queued
	submitted
	cancelling
	done
)

// notDone is the result of an op that has had no effect, and can be performed without the ring.
const notDone = -int32(unix.EAGAIN)

// do performs o and returns its result. do returns the cancellation error if a cancellation has stopped the operation.
// When do returns, panics or exits, the system no longer uses the buffer.
func (o *op) do(cs contexts) (res int32, err error) {
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	defer o.await() // a task that is killed during the wait must also wait for o
	if res, err = suspend.Wait[int32](ctx, o); err == nil {
		return res, nil
	}
	if res = o.await(); res == -int32(unix.ECANCELED) || res == -int32(unix.EINTR) {
		return 0, cs.explain(err)
	}
	return res, nil
}

// await waits until the system no longer uses the buffer of o, and returns the result.
func (o *op) await() (res int32) {
	o.g.guard.Lock()
	state, res := o.state, o.res
	o.g.guard.Unlock()
	switch state {
	case fresh:
		return -int32(unix.ECANCELED)
	case done:
		return res
	}
	suspend.Shield(func() { res, _ = suspend.Wait[int32](context.Background(), o) })
	return res
}

func (o *op) Guard() *suspend.Guard { return &o.g.guard }

func (o *op) Try() (res int32, ok bool, err error) {
	if o.state == fresh && o.g.closed {
		return notDone, true, nil
	}
	return o.res, o.state == done, nil
}

func (o *op) Enqueue(r suspend.Resumer[int32]) {
	o.waiter = r
	if o.state == fresh {
		o.state = queued
		o.g.queue.push(o)
		o.g.r.poke()
	}
}

func (o *op) Remove(suspend.Resumer[int32]) {
	o.waiter = suspend.Resumer[int32]{}
	switch o.state {
	case queued: // the op stays in the queue, and pop skips it
		o.complete(-int32(unix.ECANCELED))
	case submitted:
		o.state = cancelling
		o.g.cancels = append(o.g.cancels, o.userData)
		o.g.r.poke()
	}
}

// complete completes o with the result res. The caller must hold the guard.
func (o *op) complete(res int32) {
	o.state, o.res, o.p = done, res, nil
	o.waiter.Resume(res, nil) // Resume returns false if the task has just been cancelled; the task then calls await
}

// submitAndReap submits operations, takes completions, and reports whether an op has completed. The reactor calls it
// once per turn. Cancellations are submitted first, so that a late cancellation does not hit the next op in the same
// place.
func (g *ring) submitAndReap() (some bool) {
	if g == nil {
		return false
	}
	g.guard.Lock()
	for len(g.cancels) > 0 && g.room() {
		g.add(sqe{opcode: opAsyncCancel, fd: -1, addr: g.cancels[0], userData: noPlace})
		g.cancels = g.cancels[1:]
	}
	for len(g.free) > 0 && g.room() {
		o := g.queue.pop()
		if o == nil {
			break
		}
		last := len(g.free) - 1
		o.state, o.userData = submitted, g.free[last]
		g.free = g.free[:last]
		g.places[o.userData] = o
		g.add(o.sqe)
	}
	g.guard.Unlock()
	g.submit()
	return g.reap()
}

// submit makes the system take the queued entries. If the system lacks memory, it may refuse entries. Their ops then
// end with notDone.
func (g *ring) submit() {
	for g.unsubmitted() > 0 {
		if err := g.enter(0); err != nil && err != unix.EINTR {
			g.guard.Lock()
			for g.unsubmitted() > 0 {
				g.completeAt(g.takeBack(), notDone)
			}
			g.guard.Unlock()
		}
	}
}

// reap takes the completions without a system call, and reports whether there were any.
func (g *ring) reap() (some bool) {
	c, ok := g.popCompletion()
	if !ok {
		return false
	}
	g.guard.Lock()
	for ; ok; c, ok = g.popCompletion() {
		g.completeAt(c.userData, c.res)
	}
	g.guard.Unlock()
	return true
}

// completeAt completes the op in the place with the given index, and frees the place. The caller must hold the guard.
func (g *ring) completeAt(at uint64, res int32) {
	if at == noPlace {
		return
	}
	o := g.places[at]
	g.places[at] = nil
	g.free = append(g.free, at)
	if o.state == submitted && (res == -int32(unix.ECANCELED) || res == -int32(unix.EINTR)) {
		res = notDone // the thread that submitted the op has ended
	}
	o.complete(res)
}

// rests reports whether submitAndReap would submit nothing. The reactor calls rests after it has marked itself
// asleep.
func (g *ring) rests() bool {
	if g == nil {
		return true
	}
	g.guard.Lock()
	defer g.guard.Unlock()
	return len(g.cancels) == 0 && (len(g.free) == 0 || g.queue.first == nil)
}

// shutdown closes the ring when the reactor has ended. Tasks of other schedulers might still wait for ops. Submitted
// ops complete, and queued ops end with notDone.
func (g *ring) shutdown() {
	g.guard.Lock()
	g.closed = true
	for o := g.queue.pop(); o != nil; o = g.queue.pop() {
		o.complete(notDone)
	}
	inFlight := len(g.free) < len(g.places)
	g.guard.Unlock()
	for inFlight {
		_ = g.enter(1)
		g.reap()
		inFlight = len(g.free) < len(g.places)
	}
	g.uring.close()
}

// makeRings creates a ring for each reactor on the first call. If the system refuses io_uring, no ring is created. If
// descriptors have run out, makeRings fails.
func (l *Loop) makeRings() error {
	l.rings.mu.Lock()
	defer l.rings.mu.Unlock()
	for _, r := range l.reactors {
		if l.rings.made {
			break
		}
		if r.ring.Load() != nil || r.ended {
			continue
		}
		switch g, err := newRing(r); err {
		case nil:
			r.ring.Store(g)
		case unix.EMFILE, unix.ENFILE:
			return err
		default:
			l.rings.made = true
		}
	}
	l.rings.made = true
	return nil
}

func newRing(r *reactor) (*ring, error) {
	u, err := newURing(ringPlaces)
	if err != nil {
		return nil, err
	}
	if err := r.poller.wakeOn(u.fd); err != nil {
		u.close()
		return nil, err
	}
	g := &ring{r: r, uring: *u}
	for i := range uint64(ringPlaces) {
		g.free = append(g.free, i)
	}
	return g, nil
}

// endRing closes the ring of a reactor that has ended.
func (r *reactor) endRing() {
	r.loop.rings.mu.Lock()
	r.ended = true
	g := r.ring.Load()
	r.loop.rings.mu.Unlock()
	if g != nil {
		g.shutdown()
	}
}

// noWait is a flag with which an open does not wait for the other end of a FIFO. The system sets the same flag for an
// open that it tries in the submitting call.
const noWait = unix.O_NONBLOCK

// openViaRing opens a file as os.OpenFile does, but through a ring. If nothing has to be read from the disk, the open
// completes in the submitting call.
func (l *Loop) openViaRing(name string, flag int, perm fs.FileMode) (*os.File, error) {
	g := l.pick().ring.Load()
	path, err := unix.ByteSliceFromString(name)
	if g == nil || g.features&opensAtOnce == 0 || err != nil || perm&^fs.ModePerm != 0 || flag&unix.O_PATH != 0 {
		return nil, errRefused
	}
	o := &op{g: g, p: path, sqe: sqe{opcode: opOpenAt, fd: unix.AT_FDCWD, opFlags: uint32(flag | noWait | unix.O_CLOEXEC | unix.O_LARGEFILE)}}
	o.pointTo(path)
	o.len = uint32(perm) // the field len holds the file's permissions; a zero byte ends the name
	var fd int
	suspend.Shield(func() { fd, err = o.result(nil) }) // a Kill would otherwise leak the descriptor
	switch {
	case err == errRefused:
		return nil, err
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if flag&noWait == 0 {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag) // the call cannot fail for a file whose reads or writes may wait
	}
	return os.NewFile(uintptr(fd), name), nil
}

// viaRing performs one operation of f through a ring. The error is not wrapped.
func (f *File) viaRing(code uint8, p []byte, off int64) (n int, err error) {
	g := f.loop.pick().ring.Load()
	if g == nil || f.sys < 0 {
		return 0, errRefused
	}
	p = p[:min(len(p), maxRW)]
	o := &op{g: g, p: p, sqe: sqe{opcode: code, fd: int32(f.sys), off: uint64(off)}}
	o.pointTo(p)
	return o.result(f.cs)
}

// result performs o, and converts the result to a count and an error.
func (o *op) result(cs contexts) (n int, err error) {
	res, err := o.do(cs)
	switch {
	case err != nil:
		return 0, err
	case res == notDone:
		return 0, errRefused
	case res < 0:
		return 0, unix.Errno(-res)
	}
	return int(res), nil
}

// An opQueue is a first-in, first-out queue, whose pop skips ops that are done.
type opQueue struct{ first, last *op }

func (q *opQueue) push(o *op) {
	if q.first == nil {
		q.first = o
	} else {
		q.last.next = o
	}
	q.last = o
}

func (q *opQueue) pop() *op {
	for q.first != nil {
		o := q.first
		q.first, o.next = o.next, nil
		if o.state == queued {
			return o
		}
	}
	return nil
}
