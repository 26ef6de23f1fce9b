// Package respool provides pools of resources that are expensive to open, such as database connections, for many tasks to
// share.
//
// The pool of a client library usually waits on native channels and locks, which block the task's scheduler. A respool.Pool
// suspends only the task:
//
//	conns := respool.New(respool.Options[*pgx.Conn]{
//		Max:   4,
//		Open:  func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, config) },
//		Close: func(c *pgx.Conn) { _ = c.Close(context.Background()) },
//		Reuse: func(c *pgx.Conn) bool { return !c.IsClosed() },
//	})
//	l, err := conns.Acquire(ctx)
//	if err != nil {
//		return err // nothing is held
//	}
//	defer l.Release()
//	err = l.Value.QueryRow(ctx, "select 1").Scan(&n)
//
// The resources are checked and closed by the tasks that call the methods of a Pool. A resource is opened on a goroutine of its
// own, so that the call of Open can go on when its Acquire gives up. Otherwise tasks that wait for a shorter time than Open takes
// would never get a resource. Waiting tasks get a resource in the order in which they called Acquire.
//
// A resource is closed by the task that has found or made it useless, as in database/sql. So Close may use the scheduler of this
// task, a panic in Close reaches a caller, and no call of Close is left when Shutdown has returned. The task waits for Close, even
// if its context ends. A Release passes its turn on before it calls Close. A Close that may take a long time, such as one that says goodbye
// to a peer that may be gone, must set a deadline. If the caller must not wait at all, Close can start a task, for example in a
// scope.Group.
//
// Compared with github.com/jackc/puddle, an Acquire that opens a resource also takes one that is released meanwhile, an Open goes on when its
// Acquire gives up, and waiting tasks keep their order across a Reset.
//
// There is no AcquireOp. A case of a Select that has won must not wait any more, but an Acquire that has got its turn may still have to
// check, close or open resources. End the context of the Acquire instead. A task that must not wait uses TryAcquire.
//
// If only goroutines share the resources, github.com/jackc/puddle is sufficient. For values that are cheap to make and need no limit, use sync.Pool.
package respool

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is returned by every Acquire that is waiting when Close is called, by every later Acquire, and by a second
// Close.
var ErrClosed = outcome.Named("respool: closed", suspend.ErrClosed)

// Options configure a Pool. Max and Open are required. The functions are called without a lock, so they may suspend: Open on a
// goroutine of its own, which also closes what an Open has opened in vain, and the others by the task that calls a method of the Pool or of
// a Lease.
type Options[R any] struct {
	Max   int                                  // the largest number of resources, including those being opened, but not those that a Release or Reset closes
	Open  func(ctx context.Context) (R, error) // opens a resource, and limits the time for that itself; ctx has the values of Acquire's
	Close func(r R)                            // closes r, and limits the time for that itself; a nil Close does nothing
	Reuse func(r R) bool                       // called by Release, which closes r if the result is false; a nil Reuse means true
	Check func(ctx context.Context, r R) error // called by Acquire for an idle resource; after an error Acquire closes r and tries the next
	Fresh time.Duration                        // a resource that was idle for less than Fresh is not checked

	MaxIdleTime time.Duration // a resource that was idle for longer is closed, not used; 0 means no limit
	MaxLifetime time.Duration // a resource that was open for longer is closed, too; 0 means no limit
}

// A Pool manages up to Max resources. It must not be copied. The Pool measures time by the clock of the caller's scheduler.
type Pool[R any] struct {
	// A resource has the following states. -A> is an Acquire, -R> a Release, -C> a Close, a Reset or an Expire.
	//
	//	none    -A> opening -A> leased    or none, if Open fails, or closing, if it is outdated
	//	idle    -A> leased                or closing, if it is too old or outdated, or Check fails
	//	leased  -R> idle                  or closing, if it is too old, outdated, discarded, refused by Reuse, or the pool is closed
	//	idle    -C> closing
	//	closing     none
	//
	// A resource is outdated if there was a Reset since the beginning of its call of Open.
	//
	// Invariant: no idle resource is outdated. The idle resources are sorted by their last use.
	// Invariant: a resource in the state opening or leased has a permit; a closed pool
	// opens no resources. A task opens a resource only if it has a permit and no resource is idle, and a resource becomes
	// idle before its permit is released. So there are never more than Max resources.

	o       Options[R]
	permits *semaphore.Semaphore
	mu      atomicx.Mutex
	idle    []*resource[R]       // the last resource is used next
	users   int                  // the number of leases, and of calls that open or close a resource
	total   Stats                // all but Idle and Leased
	resets  int                  // the number of Resets
	uses    int                  // numbers the uses of resources
	dials   dlist.List[*dial[R]] // the Acquires that wait for a call of Open, first come first
	opening dlist.List[*dial[R]] // the calls of Open that have not ended
	waiting int                  // the length of dials
	open    int                  // the length of opening
	closed  bool
	unused  promise.Promise[struct{}] // filled when the pool is closed and has no users
}

type resource[R any] struct {
	value  R
	resets int // p.resets at the beginning of its call of Open
	opened time.Time
	idle   time.Time // the time of the last use
	use    int       // the number of the last use, or 0 if this use is about to end
}

// New returns a Pool without resources. It panics if Max is not positive or Open is nil.
func New[R any](o Options[R]) *Pool[R] {
	if o.Max <= 0 {
		panic("respool: Max is not positive")
	}
	if o.Open == nil {
		panic("respool: nil Open")
	}
	return &Pool[R]{o: o, permits: semaphore.New(int64(o.Max))}
}

// A seat is what a call needs to have a resource: a permit, and a place as a user. It always has one owner. The way of a seat is from an
// Acquire to the dial that the Acquire has started, to the resource that is opened, and to the Lease. The zero seat is empty.
type seat[R any] struct{ pool *Pool[R] }

// pass empties s, and returns its content for the next owner.
func (s *seat[R]) pass() seat[R] {
	passed := *s
	s.pool = nil
	return passed
}

// leave returns the permit and the place, unless s is empty.
func (s *seat[R]) leave() {
	if p := s.pass().pool; p != nil {
		p.returnPermit()
	}
}

// Acquire returns a Lease for the idle resource that was used last, or for a new resource if none is idle. It suspends
// the caller while Max resources are leased, or if Check, Open or Close suspends. While Open opens a resource, Acquire also takes
// a resource that is released.
//
// If ctx has ended, or ends while the caller waits, Acquire returns the cancellation error and changes nothing. A call of Open
// that Acquire has started goes on, and its resource is for the next Acquire. The call is cancelled when the pool is closed and no
// Acquire waits for it. On a scheduler with a sched.Watcher, such as a simulation, the call is a task of the caller's scheduler.
// Check receives ctx, and may fail when it ends. Close has no context, so Acquire waits for the Close of a resource that is too old,
// that Check refuses, or that a Reset during Check has made useless, even if ctx ends. If Open returns an error, panics or calls runtime.Goexit,
// Acquire does the same, and the next waiting task gets its turn. If the pool is closed, Acquire returns ErrClosed.
func (p *Pool[R]) Acquire(ctx context.Context) (l *Lease[R], err error) {
	// The way of one Acquire:
	//
	//	takePermit        waits for its turn
	//	joinAndTakeIdle   becomes a user, and takes an idle resource; most Acquires end here
	//	usableOrNew       checks the resource, or waits for another one
	//	dial              starts a call of Open (dial.go), whose result goes to the first that waits (keepLocked)
	since, err := p.takePermit(ctx)
	if err != nil {
		return nil, err
	}
	preempt.Looks(preempt.Gates) // a Release that happens first leaves an idle resource
	now := suspend.Now()
	if !since.waited {
		since.time = now
	}
	r, ready, ok := p.joinAndTakeIdle(since, now)
	switch {
	case !ok:
		p.permits.Release(1)
		return nil, ErrClosed
	case ready:
		return &Lease[R]{Value: r.value, of: r, pool: p}, nil
	}
	s := seat[R]{p}
	defer s.leave()
	r, err = p.usableOrNew(ctx, r, &s, since)
	if err != nil {
		return nil, err
	}
	s.pass() // to the Lease
	return &Lease[R]{Value: r.value, of: r, pool: p}, nil
}

// A beginning is the time at which a call of Acquire began, and whether the call has waited since, for a permit or for a resource.
type beginning struct {
	time   time.Time
	waited bool
}

// takePermit takes a permit. If it does not have to wait, it leaves the time to the caller.
func (p *Pool[R]) takePermit(ctx context.Context) (since beginning, err error) {
	suspend.Preemptible()
	if err = suspend.Err(ctx); err == nil {
		if p.permits.TryAcquire(1) {
			return since, nil
		}
		since = beginning{suspend.Now(), true}
		err = p.permits.Acquire(ctx, 1)
	}
	switch {
	case errors.Is(err, semaphore.ErrClosed):
		err = ErrClosed
	case err != nil:
		p.countCancelled()
	}
	return since, err
}

// joinAndTakeIdle adds the caller, which has a permit, to the users, and takes an idle resource. It reports whether the resource can be used
// without a Check, and whether the pool is open. All this is one step, so that Stats never counts a resource twice.
func (p *Pool[R]) joinAndTakeIdle(since beginning, now time.Time) (r *resource[R], ready, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, false
	}
	p.users++
	if r = p.takeIdleLocked(nil); r != nil && p.ready(r, now) {
		p.countLocked(since, now)
		ready = true
	}
	return r, ready, true
}

// Close closes the pool and its idle resources. A waiting Acquire returns ErrClosed. An Acquire that is opening a resource
// continues, and existing Leases remain valid; their Release closes the resource. A second Close changes nothing and
// returns ErrClosed. Close suspends only if Options.Close suspends.
func (p *Pool[R]) Close() error {
	suspend.Point()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.closed = true
	p.users++
	p.mu.Unlock()
	defer p.removeUser()
	p.cancelUnwanted()
	_ = p.permits.Close()
	outcome.Each(func() bool {
		r := p.takeIdle()
		if r != nil {
			p.close(r)
		}
		return r != nil
	})
	return nil
}

// Shutdown closes the pool as Close does, and waits until the last resource is closed. If ctx ends first, Shutdown returns
// the cancellation error, but the pool is closed. Shutdown may be called again to continue the wait. It returns nil if nothing is
// left, even if ctx has ended.
func (p *Pool[R]) Shutdown(ctx context.Context) error {
	_ = p.Close()
	_, err := p.unused.Await(ctx)
	if _, unused, _ := p.unused.Try(); unused {
		return nil
	}
	return err
}

// returnPermit decrements p.users and releases the caller's permit.
func (p *Pool[R]) returnPermit() {
	defer p.permits.Release(1)
	p.removeUser()
}

func (p *Pool[R]) removeUser() {
	preempt.Releases(preempt.Resources)
	p.mu.Lock()
	p.users--
	unused := p.closed && p.users == 0
	p.mu.Unlock()
	if unused {
		_ = p.unused.Fill(struct{}{})
	}
}

// usableOrNew returns r if it can be used. Otherwise, or if r is nil, it returns another resource. It passes the caller's seat
// s to a call of Open, and gets the seat of the resource.
func (p *Pool[R]) usableOrNew(ctx context.Context, r *resource[R], s *seat[R], since beginning) (*resource[R], error) {
	for {
		isNew := false
		if r == nil {
			var err error
			if *s, r, isNew, err = p.dial(ctx, s.pass()); err != nil {
				return nil, err
			}
			since.waited = true
		}
		if usable, err := p.usable(ctx, r, isNew, since); usable || err != nil {
			return r, err
		}
		r = p.takeIdle()
	}
}

// usable reports whether r can be used, and counts the call. Otherwise it closes r. A new resource needs no Check.
func (p *Pool[R]) usable(ctx context.Context, r *resource[R], isNew bool, since beginning) (ok bool, err error) {
	defer func() {
		if !ok {
			p.close(r)
		}
	}()
	now := suspend.Now()
	switch {
	case isNew:
	case p.tooOld(r, now):
		return false, nil
	case p.ready(r, now):
	case p.o.Check(ctx, r.value) != nil:
		if err = suspend.Err(ctx); err != nil { // Acquire must not try the next resource after ctx has ended
			p.countCancelled()
		}
		return false, err
	default:
		now = suspend.Now()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.resets != p.resets {
		return false, nil
	}
	p.countLocked(since, now)
	return true, nil
}

// ready reports whether r, which was idle, can be used without a Check.
func (p *Pool[R]) ready(r *resource[R], now time.Time) bool {
	return !p.tooOld(r, now) && (p.o.Check == nil || now.Sub(r.idle) < p.o.Fresh)
}

// keepLocked finds the next owner of r:
//   - the first Acquire that waits for a call of Open gets r, with its permit and place as a user
//   - if none waits, r becomes idle, and p.users is decremented
//   - if the pool is closed, or r is outdated by a Reset, nobody gets r and kept is false, unless r is new and an Acquire would otherwise wait for
//     ever, because no other call of Open is left for it; this Acquire closes an outdated r
func (p *Pool[R]) keepLocked(r *resource[R], isNew bool) (kept bool, to *dial[R]) {
	outdated := r.resets != p.resets
	refused := p.closed || outdated
	onlyOpenLeft := isNew && (!outdated || p.waiting > p.open)
	if n := p.dials.First(); n != nil && (!refused || onlyOpenLeft) {
		p.serveLocked(n.Value, opened[R]{r: r, isNew: isNew}, nil)
		return true, n.Value
	}
	if refused {
		return false, nil
	}
	if r.use == 0 {
		p.uses++
		r.use = p.uses
	}
	i := len(p.idle)
	for i > 0 && p.idle[i-1].use > r.use {
		i--
	}
	p.idle = slices.Insert(p.idle, i, r)
	p.users--
	return true, nil
}

// tooOld reports whether r must be closed because of its age. At a Release r.idle equals now, so that only MaxLifetime counts.
func (p *Pool[R]) tooOld(r *resource[R], now time.Time) bool {
	return p.o.MaxIdleTime > 0 && now.Sub(r.idle) > p.o.MaxIdleTime || p.o.MaxLifetime > 0 && now.Sub(r.opened) > p.o.MaxLifetime
}

// isOutdated reports whether there was a Reset since the beginning of the Open of r.
func (p *Pool[R]) isOutdated(r *resource[R]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.resets != p.resets
}

func (p *Pool[R]) close(r *resource[R]) {
	if p.o.Close != nil {
		p.o.Close(r.value)
	}
}
