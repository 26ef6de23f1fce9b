//go:build !braid_portable

package eventloop

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/suspend"
)

// A slowFile is a File whose reads take time. Its descriptor is a pipe, which the Loop treats as a regular file.
type slowFile struct {
	*File
	loop *Loop
	w    *os.File
}

func newSlowFile(t *testing.T) *slowFile {
	debug.SetTraceback("all")
	late := time.AfterFunc(15*time.Second, func() { panic(t.Name() + " takes too long") })
	t.Cleanup(func() { late.Stop() })
	l, err := New(Options{HandOver: -1})
	require.NoError(t, err)
	if err := l.makeRings(); err != nil || l.reactors[0].ring.Load() == nil {
		t.Skip("the system refuses io_uring: ", err)
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	s := &slowFile{&File{file: &file{os: r, loop: l, sys: int(r.Fd())}}, l, w}
	t.Cleanup(func() { require.NoError(t, w.Close()); _ = s.Close(); require.NoError(t, l.Close()) })
	return s
}

func (s *slowFile) ring() *ring { return s.loop.reactors[0].ring.Load() }

// await returns when n slots of the ring are in use.
func (s *slowFile) await(t *testing.T, n int) {
	t.Helper()
	for g := s.ring(); ; runtime.Gosched() {
		g.guard.Lock()
		now := ringPlaces - len(g.free)
		g.guard.Unlock()
		if now == n {
			return
		}
	}
}

// task runs f as a task, and waits for it.
func (s *slowFile) task(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	require.NoError(t, s.loop.Go(func() { defer close(done); f() }))
	<-done
}

// All slots are in use. Further operations wait for one, in order, and can be cancelled at once.
func TestARingThatIsFull(t *testing.T) {
	const more = 50
	s := newSlowFile(t)
	var all sync.WaitGroup
	got := make([]byte, ringPlaces+more)
	read := func(i int) {
		all.Add(1)
		must(0, s.loop.Go(func() {
			defer all.Done()
			if n, err := s.ReadAt(got[i:i+1], 0); n != 1 || err != nil {
				t.Error(n, err)
			}
		}))
	}
	for i := range ringPlaces {
		read(i)
	}
	s.await(t, ringPlaces)
	ctx, cancel := context.WithCancel(context.Background())
	queued := make(chan error, 1)
	must(0, s.loop.Go(func() {
		_, err := s.WithContext(ctx).ReadAt(make([]byte, 1), 0)
		queued <- err
	}))
	for i := range more {
		read(ringPlaces + i)
	}
	for s.loop.Stats().Suspended < ringPlaces+1+more {
		runtime.Gosched()
	}
	cancel()
	require.ErrorIs(t, <-queued, context.Canceled) // although the operations before it still wait
	s.await(t, ringPlaces)
	for range got {
		must(s.w.Write([]byte("x")))
	}
	all.Wait()
	require.Equal(t, strings.Repeat("x", len(got)), string(got))
	s.await(t, 0)
}

// An operation that comes after the reactor has looked, and before it sleeps, prevents the sleep.
func TestAReactorDoesNotSleepWithAnOperation(t *testing.T) {
	s := newSlowFile(t)
	got := make(chan error)
	s.task(t, func() {
		go func() {
			_, err := s.ReadAt(make([]byte, 1), 0)
			got <- err
		}()
		for g, there := s.ring(), false; !there; runtime.Gosched() {
			g.guard.Lock()
			there = g.queue.first != nil
			g.guard.Unlock()
		}
		s.loop.reactors[0].sleep()
	})
	must(s.w.Write([]byte("x")))
	require.NoError(t, <-got)
}

// A completion wakes the reactor even if it sleeps on another thread than the one that submitted the operation: the kernel
// interrupts only the latter. While all processors are busy, the reactor moves to another thread after a sleep.
func TestACompletionEndsTheSleep(t *testing.T) {
	s := newSlowFile(t)
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !stop.Load() {
			}
		})
	}
	defer busy.Wait()
	defer stop.Store(true)
	for range 2 {
		got := make(chan error)
		go func() {
			_, err := s.ReadAt(make([]byte, 1), 0)
			got <- err
		}()
		s.await(t, 1)
		threads := map[int]bool{}
		for range 10 {
			s.task(t, func() { threads[unix.Gettid()] = true })
			time.Sleep(time.Millisecond) // lets the reactor fall asleep
		}
		must(s.w.Write([]byte("x")))
		require.NoError(t, <-got)
		t.Log(len(threads), "threads")
	}
}

// A cancelled read that was submitted returns only when the kernel does not use the buffer any more.
func TestACancelledReadLeavesTheBuffer(t *testing.T) {
	s := newSlowFile(t)
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		buf := []byte("before")
		failed := make(chan error)
		must(0, s.loop.Go(func() {
			n, err := s.WithContext(ctx).ReadAt(buf, 0)
			must(s.w.Write([]byte("after")))
			for range 3 {
				suspend.Yield()
			}
			if n != 0 || string(buf) != "before" {
				t.Errorf("%d bytes, %q", n, buf)
			}
			failed <- err
		}))
		s.await(t, 1)
		cancel()
		err := <-failed
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "read |0: ")
		s.task(t, func() {
			must(s.ReadAt(buf[:5], 0))
			require.Equal(t, "after", string(buf[:5]), "no byte is lost")
		})
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range []func() error{
		func() error { _, err := s.WithContext(done).ReadAt(make([]byte, 1), 0); return err },
		func() error { return s.WithContext(done).WithContext(context.Background()).Sync() },
	} {
		require.ErrorIs(t, f(), context.Canceled)
	}
	s.await(t, 0)
}

// A read that has succeeded before the kernel learns of the cancellation returns its result.
func TestACancellationThatIsLate(t *testing.T) {
	s := newSlowFile(t)
	ctx, cancel := context.WithCancel(context.Background())
	buf := make([]byte, 5)
	result := make(chan error)
	must(0, s.loop.Go(func() {
		_, err := s.WithContext(ctx).ReadAt(buf, 0)
		result <- err
	}))
	s.await(t, 1)
	s.task(t, func() { // the reactor learns of neither before the task has ended
		must(s.w.Write([]byte("bytes")))
		for g := s.ring(); *g.cqHead == atomic.LoadUint32(g.cqTail); { // until the kernel has completed it
			runtime.Gosched()
		}
		cancel()
	})
	require.NoError(t, <-result)
	require.Equal(t, "bytes", string(buf))
}

// A ReadAt continues if the kernel has read less than was requested.
func TestAShortRead(t *testing.T) {
	s := newSlowFile(t)
	buf := make([]byte, 8)
	read := make(chan error)
	must(0, s.loop.Go(func() { _, err := s.ReadAt(buf, 0); read <- err }))
	for _, part := range []string{"one", "two", "in"} {
		for must(unix.IoctlGetInt(s.sys, unix.TIOCINQ)) > 0 { // until the operation before has got its part
			runtime.Gosched()
		}
		s.await(t, 1)
		must(s.w.Write([]byte(part)))
	}
	require.NoError(t, <-read)
	require.Equal(t, "onetwoin", string(buf))
}

// Close waits for operations that are under way.
func TestCloseWaitsForARead(t *testing.T) {
	s := newSlowFile(t)
	buf := make([]byte, 1)
	var read, closed = make(chan error, 1), make(chan error, 1)
	must(0, s.loop.Go(func() { _, err := s.ReadAt(buf, 0); read <- err }))
	s.await(t, 1)
	must(0, s.loop.Go(func() { closed <- s.Close() }))
	for now := s.loop.Stats(); (now.Suspended < 2 || now.Blocking > 0) && len(closed) == 0; now = s.loop.Stats() {
		runtime.Gosched()
	}
	for range 100 { // gives a Close that does not wait the time to return
		turn := make(chan struct{})
		must(0, s.loop.Go(func() { close(turn) }))
		<-turn
	}
	_, err := s.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorIs(t, s.Close(), os.ErrClosed)
	require.Empty(t, closed)
	must(s.w.Write([]byte("x")))
	require.NoError(t, <-read)
	require.NoError(t, <-closed)
	require.Equal(t, "x", string(buf))
}

// The end of a reactor waits for the operations of tasks on other reactors, too.
func TestARingEndsAfterARead(t *testing.T) {
	s := newSlowFile(t)
	buf := make([]byte, 1)
	var read, closed = make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.ReadAt(buf, 0); read <- err }()
	s.await(t, 1)
	go func() { closed <- s.loop.Close() }()
	for ended := false; !ended; runtime.Gosched() {
		s.ring().guard.Lock()
		ended = s.ring().closed
		s.ring().guard.Unlock()
	}
	require.Empty(t, read)
	must(s.w.Write([]byte("x")))
	require.NoError(t, <-read)
	require.NoError(t, <-closed)
	require.Equal(t, "x", string(buf))
}

// Even if a Kill ends the wait, the kernel does not use the buffer afterwards.
func TestAKilledReadLeavesTheBuffer(t *testing.T) {
	s := newSlowFile(t)
	buf := []byte("before")
	done := make(chan struct{})
	var reader suspend.Task
	must(0, s.loop.Go(func() {
		defer func() {
			defer close(done)
			must(s.w.Write([]byte("after")))
			for range 3 {
				suspend.Yield()
			}
			if string(buf) != "before" {
				t.Errorf("%q", buf)
			}
		}()
		reader = suspend.Current()
		_, _ = s.ReadAt(buf, 0)
		t.Error("a killed task continues")
	}))
	s.await(t, 1)
	s.task(t, func() {
		if !reader.(interface{ Kill() bool }).Kill() {
			t.Error("not killed")
		}
	})
	<-done
	s.await(t, 0)
	require.NoError(t, s.Close(), "the operation has ended")
}

// The stack of a waiting task may move. The buffer must not move, even if it is a local array.
func TestABufferIsNotOnTheStack(t *testing.T) {
	s := newSlowFile(t)
	done := make(chan [64]byte)
	must(0, s.loop.Go(func() {
		deep(1000) // makes the stack large, so that it shrinks while the task waits
		var buf [64]byte
		must(s.ReadAt(buf[:], 0))
		done <- buf
	}))
	s.await(t, 1)
	for range 5 {
		runtime.GC()
	}
	text := bytes.Repeat([]byte("x"), 64)
	must(s.w.Write(text))
	got := <-done
	require.Equal(t, string(text), string(got[:]))
}

//go:noinline
func deep(n int) int {
	var frame [100]int
	if n > 0 {
		frame[n%100] = deep(n - 1)
	}
	return frame[n/11%100] + n
}

// An operation is done without the ring if the kernel refuses it, or drops it because a thread ends.
func TestASubmissionThatFails(t *testing.T) {
	s := newSlowFile(t)
	name := filepath.Join(t.TempDir(), "name")
	require.NoError(t, os.WriteFile(name, []byte("0123456789"), 0o600))
	f, err := s.loop.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	read := func() {
		p := make([]byte, 4)
		if _, err := f.ReadAt(p, 2); err != nil || string(p) != "2345" {
			t.Errorf("%q, %v", p, err)
		}
	}
	g := s.ring()
	fd := g.fd
	s.task(t, func() { g.fd = -1 })
	var all sync.WaitGroup
	for range 2 * ringPlaces {
		all.Add(1)
		must(0, s.loop.Go(func() { defer all.Done(); read() }))
	}
	all.Wait()
	s.task(t, func() { g.fd = fd })
	s.task(t, read)
	s.await(t, 0)
	for _, res := range []unix.Errno{unix.ECANCELED, unix.EINTR, unix.EAGAIN} { // as if the kernel had dropped the operation
		asked := make(chan struct{})
		must(0, s.loop.Go(func() {
			defer close(asked)
			o := &op{g: g, p: make([]byte, 1), sqe: sqe{opcode: opRead, fd: int32(s.sys)}}
			o.pointTo(o.p)
			if res, err := o.do(nil); res != notDone || err != nil {
				t.Error(res, err)
			}
		}))
		s.await(t, 1)
		s.task(t, func() {
			g.guard.Lock()
			var o *op
			for _, o = range g.places {
				if o != nil {
					break
				}
			}
			g.add(sqe{opcode: opAsyncCancel, fd: -1, addr: o.userData, userData: noPlace})
			g.guard.Unlock()
			g.submit()
			for c, ok := g.popCompletion(); ok; c, ok = g.popCompletion() {
				g.guard.Lock()
				if c.userData != noPlace {
					c.res = -int32(res)
				}
				g.completeAt(c.userData, c.res)
				g.guard.Unlock()
			}
		})
		<-asked
	}
	require.NoError(t, f.Close())
}

// Without free descriptors an Open fails. The next Open that finds some creates the rings.
func TestOpenWithoutDescriptors(t *testing.T) {
	l, err := New(Options{Loops: 2})
	require.NoError(t, err)
	defer l.Close()
	name := filepath.Join(t.TempDir(), "name")
	require.NoError(t, os.WriteFile(name, []byte("0123456789"), 0o600))
	var limit, none syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none = limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, failed := l.Open(name)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, failed, syscall.EMFILE)
	require.ErrorContains(t, failed, "open "+name+": ")
	f, err := l.Open(name)
	require.NoError(t, err)
	defer f.Close()
	for _, r := range l.reactors {
		require.NotNil(t, r.ring.Load())
	}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, failed = l.Open(name)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, failed, syscall.EMFILE)
}

// A Loop closes all its rings.
func TestRingsAreClosed(t *testing.T) {
	before := descriptors(t)
	for range 3 {
		l, err := New(Options{Loops: 2})
		require.NoError(t, err)
		f, err := l.Open(os.Args[0])
		require.NoError(t, err)
		p := make([]byte, 4)
		must(f.ReadAt(p, 0))
		require.NoError(t, l.Close())
		require.NoError(t, f.Close())
	}
	for try := 0; descriptors(t) != before && try < 1000; try++ {
		time.Sleep(time.Millisecond) // until the rings of earlier tests are closed
	}
	require.Equal(t, before, descriptors(t))
}

func descriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
