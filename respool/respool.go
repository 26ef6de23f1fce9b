// Package respool shares a few resources that are expensive to open, such as connections to a database, among many tasks.
//
// A pool of a client library waits on its own channels and locks, which hold the scheduler of the task. This one suspends the task:
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
// A Pool starts no task and no goroutine. The task that acquires opens, checks and closes, with its own context. Tasks
// get their turns in the order in which they asked.
//
// For goroutines alone github.com/jackc/puddle is enough, and it goes on opening when the first caller gives up. For
// values that are cheap to make and need no limit, use sync.Pool.
package respool

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of an Acquire that waits during the Close or comes later, and of a second Close.
var ErrClosed = outcome.Named("respool: the pool is closed", suspend.ErrClosed)

// Options describe the resources of a Pool. Max and Open are required. All functions are called by the task that acquires, releases or closes,
// without a lock, so they may suspend.
type Options[R any] struct {
	Max   int                                  // there are never more, counting resources that are being opened or closed
	Open  func(ctx context.Context) (R, error) // gets the context of the Acquire
	Close func(r R)                            // closes r; a nil Close does nothing
	Reuse func(r R) bool                       // called by Release: false closes r; nil means always true
	Check func(ctx context.Context, r R) error // called by Acquire with a resource that was idle: an error closes r, and Acquire goes on
	Fresh time.Duration                        // a resource that was idle for less is not checked

	MaxIdleTime time.Duration // a resource that was idle for longer is closed in place of being used; 0 means no limit
	MaxLifetime time.Duration // a resource that was opened longer ago is closed, too; 0 means no limit
}

// A Pool has up to Max resources. New makes a Pool, and it must not be copied. It uses the clock of the caller's
// scheduler.
type Pool[R any] struct {
	// A resource moves as follows. -A> is an Acquire, -R> a Release, -C> a Close or an Expire.
	//
	//	none    -A> opening -A> leased    or none, if Open fails
	//	idle    -A> leased                or closing, if it is too old or Check fails
	//	leased  -R> idle                  or closing, if it is too old, discarded, refused by Reuse, or the pool is closed
	//	idle    -C> closing
	//	closing     none
	//
	// Invariant: a resource that is opening, leased or closing has a permit, or -C> closes it and none is opened any
	// more. A task opens a resource only when it has a permit and none is idle, and a resource becomes idle before its
	// permit is free. So there are never more than Max.

	o       Options[R]
	permits *semaphore.Semaphore
	mu      atomicx.Mutex
	idle    []*resource[R] // the last resource was released last, and is the next to be used
	users   int            // calls that have or close a resource
	opened  int            // resources, since the beginning
	closed  bool
	unused  promise.Promise[struct{}] // filled when the pool is closed and has no users
}

type resource[R any] struct {
	value  R
	opened time.Time
	idle   time.Time // the time of its Release
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

// A Lease is the right to use a resource, from Acquire to Release.
type Lease[R any] struct {
	Value R

	of        *resource[R]
	pool      *Pool[R]
	discarded atomicx.Bool
	released  atomicx.Bool
}

// Acquire returns a resource: the idle resource that was released last, or a new resource if none is idle. It suspends
// the caller while Max are leased, and as Check, Open and Close do.
//
// If ctx is done while the caller waits, or already, Acquire returns the cancellation error, and nothing has changed. Check and Open have ctx,
// and may fail with its error. The error of Open is the error of Acquire. It is not kept, so that the next Acquire opens again. If Open panics
// or ends the task, the caller's turn goes to the next task. A closed pool returns ErrClosed.
func (p *Pool[R]) Acquire(ctx context.Context) (l *Lease[R], err error) {
	if err := p.permits.Acquire(ctx, 1); err != nil {
		if errors.Is(err, semaphore.ErrClosed) {
			err = ErrClosed
		}
		return nil, err
	}
	if !p.enter() {
		p.permits.Release(1)
		return nil, ErrClosed
	}
	defer func() {
		if l == nil {
			p.leave()
		}
	}()
	r, err := p.resource(ctx)
	if err != nil {
		return nil, err
	}
	return &Lease[R]{Value: r.value, of: r, pool: p}, nil
}

// Release gives the resource back, and the longest waiting task gets its turn. It closes the resource instead if it is too old, discarded or
// refused by Reuse, or if the pool is closed. It suspends as Reuse and Close do. Any task may release. A second Release panics.
func (l *Lease[R]) Release() {
	if l.released.Swap(true) {
		panic("respool: a Lease is released twice")
	}
	preempt.Releases(preempt.Gates)
	p, r := l.pool, l.of
	kept := false
	defer p.leave()
	defer func() {
		if !kept { // Reuse may also have panicked
			p.close(r)
		}
	}()
	r.idle = suspend.Now()
	if l.discarded.Load() || p.tooOld(r, r.idle) || p.o.Reuse != nil && !p.o.Reuse(r.value) {
		return
	}
	kept = p.keep(r)
}

// Discard says that the resource is broken, so that Release closes it. It changes nothing after the Release.
func (l *Lease[R]) Discard() { l.discarded.Store(true) }

// Expire closes the idle resources that are too old. Without it they are closed when their turn comes, which in a pool with little to do may
// be never. Call it from time to time, or from a task with a rate.Ticker. It suspends as Close does.
func (p *Pool[R]) Expire() {
	outcome.Each(p.expireOne)
}

// expireOne closes an idle resource that is too old. It reports false if there is none.
func (p *Pool[R]) expireOne() bool {
	if !p.permits.TryAcquire(1) { // all resources are in use, or tasks wait for idle resources
		return false
	}
	if !p.enter() {
		p.permits.Release(1)
		return false
	}
	defer p.leave()
	now := suspend.Now()
	r, _ := p.takeIdle(func(r *resource[R]) bool { return p.tooOld(r, now) })
	if r != nil {
		p.close(r)
	}
	return r != nil
}

// Close closes the idle resources. Tasks that wait get ErrClosed. An Acquire that is opening a resource, and the holder of a Lease, can go on;
// the Release closes the resource. A second Close changes nothing and returns ErrClosed. It suspends as the function Close of the Options does.
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
	defer p.done()
	_ = p.permits.Close()
	outcome.Each(func() bool {
		r, _ := p.takeIdle(nil)
		if r != nil {
			p.close(r)
		}
		return r != nil
	})
	return nil
}

// Shutdown is Close, and waits until the last resource is closed. If ctx is done first, it returns the cancellation
// error, but the pool is closed. It may be called again, to wait on.
func (p *Pool[R]) Shutdown(ctx context.Context) error {
	_ = p.Close()
	_, err := p.unused.Await(ctx)
	return err
}

// Stats are the resources of a pool at one moment.
type Stats struct {
	Idle   int
	Leased int // leased, being opened, or being closed
	Opened int // counted since New
}

// Stats returns the numbers of now. It never suspends.
func (p *Pool[R]) Stats() Stats {
	suspend.Point()
	preempt.Looks(preempt.Gates)
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Idle: len(p.idle), Leased: p.users, Opened: p.opened}
}

// enter counts a call that may have a resource from now on.
func (p *Pool[R]) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.users++
	}
	return !p.closed
}

// leave is the end of a call that enter has counted, and of its permit.
func (p *Pool[R]) leave() {
	defer p.permits.Release(1)
	p.done()
}

func (p *Pool[R]) done() {
	p.mu.Lock()
	p.users--
	unused := p.closed && p.users == 0
	p.mu.Unlock()
	if unused {
		_ = p.unused.Fill(struct{}{})
	}
}

// resource returns an idle resource that can be used, or a new one.
func (p *Pool[R]) resource(ctx context.Context) (*resource[R], error) {
	preempt.Looks(preempt.Gates) // a Release before this moment leaves an idle resource
	for {
		r, closed := p.takeIdle(nil)
		switch {
		case r == nil && closed:
			return nil, ErrClosed
		case r == nil:
			return p.open(ctx)
		}
		usable, err := p.usable(ctx, r)
		if usable || err != nil {
			return r, err
		}
	}
}

// usable reports whether an idle resource can be used, and closes it otherwise.
func (p *Pool[R]) usable(ctx context.Context, r *resource[R]) (ok bool, err error) {
	defer func() {
		if !ok {
			p.close(r)
		}
	}()
	now := suspend.Now()
	switch {
	case p.tooOld(r, now):
		return false, nil
	case p.o.Check == nil || now.Sub(r.idle) < p.o.Fresh:
		return true, nil
	case p.o.Check(ctx, r.value) != nil:
		return false, suspend.Err(ctx) // a Check that was cut off says nothing about the next resource
	}
	return true, nil
}

// takeIdle returns the idle resource that was released last, or the last for which ok is true, and nil if there is none. It also reports whether
// the pool is closed, in the same moment: then nothing more may be opened.
func (p *Pool[R]) takeIdle(ok func(r *resource[R]) bool) (r *resource[R], closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range slices.Backward(p.idle) {
		if ok == nil || ok(r) {
			p.idle = slices.Delete(p.idle, i, i+1)
			return r, p.closed
		}
	}
	return nil, p.closed
}

func (p *Pool[R]) open(ctx context.Context) (*resource[R], error) {
	v, err := p.o.Open(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.opened++
	p.mu.Unlock()
	return &resource[R]{value: v, opened: suspend.Now()}, nil
}

// keep makes r idle. It reports false if the pool is closed.
func (p *Pool[R]) keep(r *resource[R]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.idle = append(p.idle, r)
	return true
}

// tooOld reports whether r is to be closed. A resource that is leased is not idle: its idle time is now.
func (p *Pool[R]) tooOld(r *resource[R], now time.Time) bool {
	return p.o.MaxIdleTime > 0 && now.Sub(r.idle) > p.o.MaxIdleTime || p.o.MaxLifetime > 0 && now.Sub(r.opened) > p.o.MaxLifetime
}

func (p *Pool[R]) close(r *resource[R]) {
	if p.o.Close != nil {
		p.o.Close(r.value)
	}
}
