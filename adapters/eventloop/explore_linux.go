//go:build explore && !braid_portable

package eventloop

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// The Loop in this file is for the model checker. Its reactor runs on a task of the checker, without coroutines, and
// polls nothing outside the program.

// polling is the type of a reactor's poller.
type polling interface {
	hold()
	dropRef()
	wake()
	poll() bool
	wait(d time.Duration)
	dispatch()
	add(d *fd) error
	wakeOn(sys int) error
	remove(d *fd)
	closeAll()
	closeListeners()
	close()
}

// A system makes the system calls of an fd, or calls the fake Stream instead.
type system struct {
	descriptor
	fake *Stream
}

func (s *system) sysRead(p []byte) (int, error) {
	if s.fake == nil {
		return s.descriptor.sysRead(p)
	}
	return s.fake.read(p)
}

func (s *system) sysClose() {
	if s.fake == nil {
		s.descriptor.sysClose()
	} else if s.fake.closed.Swap(true) {
		panic("closed twice")
	}
}

// A Stream is a fake descriptor. Each read returns a single byte.
type Stream struct {
	d      *fd
	data   atomicx.Int32
	closed atomicx.Bool
}

func (s *Stream) read(p []byte) (int, error) {
	n := s.data.Load()
	if s.closed.Load() {
		panic("a system call on a descriptor that has been reused")
	}
	if n == 0 {
		return -1, unix.EAGAIN
	}
	s.data.Add(-1)
	return 1, nil
}

// Put adds a byte to s, and then delivers the event that the reactor would deliver.
func (s *Stream) Put() {
	s.data.Add(1)
	s.d.event(unix.EPOLLIN)
}

// Read reads from s as Conn.Read does.
func (s *Stream) Read(ctx context.Context) (int, error) {
	var p [2]byte
	return s.d.read(contexts{ctx}, p[:])
}

// Expire sets a read deadline in the past.
func (s *Stream) Expire() error { return s.d.setReadDeadline(time.Unix(1, 0)) }

// Turn holds the turn of the reading side during a call of f.
func (s *Stream) Turn(ctx context.Context, f func()) error {
	if err := s.d.rd.acquireTurn(contexts{ctx}); err != nil {
		return err
	}
	defer s.d.rd.give()
	f()
	return nil
}

// Close closes the Stream.
func (s *Stream) Close() error { return s.d.close() }

// Closed reports whether the descriptor was closed.
func (s *Stream) Closed() bool { return s.closed.Load() }

// An Exploring is a Loop with one reactor.
type Exploring struct {
	*Loop
	r      *reactor
	poller *still
}

// NewExploring returns an Exploring. The caller must call Run.
func NewExploring() *Exploring { return NewExplorings(1)[0] }

// NewExplorings returns the n reactors of one Loop. The caller must call Run of each.
func NewExplorings(n int) (all []*Exploring) {
	l := &Loop{base: time.Now().Add(-time.Hour)}
	l.block = blocking.New(blocking.Limits{Width: 1, Max: 1, Closed: errLoopClosed}, l.running.done)
	for range n {
		p := &still{}
		p.refs.Store(1)
		r := &reactor{loop: l, poller: p}
		r.timers.init(r)
		r.core = runner.New(r, p.wake, nil, errLoopClosed)
		l.reactors = append(l.reactors, r)
		all = append(all, &Exploring{l, r, p})
	}
	l.busy.Store(int32(n))
	l.live.Store(int32(n))
	l.running.add(n + 1)
	return all
}

// Run is the body of the reactor's goroutine.
func (x *Exploring) Run() {
	self := suspend.Self()
	x.poller.self.Store(&self)
	defer x.ended()
	x.r.core.Own()
	for more := true; more; more = x.r.pollOrSleep() {
		x.r.core.RunPlainly()
	}
	x.r.core.Release()
	x.r.discard()
}

// A Taken is an Exploring whose reactor can be taken from the task that holds it. The coroutines of a Taken are tasks
// of the checker.
type Taken struct {
	*Exploring
	Leased *runner.Leased
}

// NewTaken returns a Taken with n coroutines.
func NewTaken(n int) *Taken {
	x := NewExploring()
	return &Taken{x, runner.Emulate(x.r.core, n)}
}

// Run is the body of the reactor's first goroutine.
func (x *Taken) Run() { x.run(x.Leased.Begin()) }

// Monitor tries to take the reactor, and runs it if that succeeds.
func (x *Taken) Monitor() {
	if x.Leased.Taken() {
		x.run(suspend.Self())
	}
}

func (x *Taken) run(self suspend.Task) {
	x.poller.self.Store(&self)
	x.r.core.Own()
	for x.r.pollOrSleep() {
		if !x.r.core.RunTurn() {
			return
		}
	}
	x.Leased.Over()
	x.r.discard()
	x.ended()
}

// Soon sets a timer that is due immediately and calls f.
func (x *Exploring) Soon(f func()) {
	ts := &x.r.timers
	ts.set(newTimer(f), ts.after(0))
}

// InAnHour sets a timer that is due in an hour, and panics if it runs.
func (x *Exploring) InAnHour() {
	ts := &x.r.timers
	ts.set(newTimer(func() { panic("an hour has passed") }), ts.after(time.Hour))
}

// Sleep waits as a Dial does while the backlog of a unix socket is full.
func (x *Exploring) Sleep(ctx context.Context, d time.Duration) error {
	return x.pick().timers.sleep(ctx, d)
}

// Freed reports whether no references to the poller are left.
func (x *Exploring) Freed() bool { return x.poller.refs.Load() == 0 }

// Stream returns a new Stream.
func (x *Exploring) Stream() *Stream {
	s := new(Stream)
	d, err := newFD(x.r, -1, nil)
	if err != nil {
		panic(err)
	}
	d.fake, s.d = s, d
	return s
}

// Listener returns a Listener that accepts nothing.
func (x *Exploring) Listener() *Listener { return &Listener{loop: x.Loop} }

// Pause waits as Accept does after a shortage.
func (x *Exploring) Pause(ctx context.Context, ln *Listener, d time.Duration) error {
	return ln.pause(contexts{ctx}, d)
}

// A still is a poller whose wait ends only when its method wake is called.
type still struct {
	refs  atomicx.Int64
	woken atomicx.Bool // models the eventfd
	self  atomicx.Pointer[suspend.Task]
}

func (p *still) hold() {
	if p.refs.Add(1) == 1 {
		panic("held when it was free")
	}
}

func (p *still) dropRef() {
	if p.refs.Add(-1) < 0 {
		panic("released twice")
	}
}

func (p *still) wake() {
	if p.refs.Load() <= 0 {
		panic("a write to a descriptor that has been reused")
	}
	p.woken.Store(true)
	if self := p.self.Load(); self != nil {
		(*self).Unpark()
	}
	p.dropRef()
}

func (p *still) poll() bool { return p.woken.Swap(false) }

func (p *still) wait(time.Duration) {
	for !p.woken.Swap(false) {
		(*p.self.Load()).Park()
	}
}

func (p *still) dispatch()        {}
func (p *still) add(*fd) error    { return nil }
func (p *still) remove(*fd)       {}
func (p *still) closeAll()        {}
func (p *still) closeListeners()  {}
func (p *still) wakeOn(int) error { return nil }
func (p *still) close()           {}
