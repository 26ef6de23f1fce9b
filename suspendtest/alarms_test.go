package suspendtest_test

import (
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
	"github.com/stretchr/testify/require"
)

// passes runs the checks with the given prefix. A correct scheduler passes them.
func passes(t *testing.T, prefix string, open suspendtest.Open) {
	for _, name := range suspendtest.Names() {
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "Execute") {
			suspendtest.Check(t, name, time.Minute, suspendtest.Direct, open, suspendtest.Options{})
		}
	}
}

// No scheduler guarantees punctual timers. Here a timer may fire long after another one that was set later.
func TestTimersMayBeLate(t *testing.T) {
	passes(t, "Timers/", timers(0, func(d time.Duration, f func()) func() bool {
		if d < 4*time.Millisecond {
			d += 10 * time.Millisecond
		}
		return forbidden(d, f)
	}))
}

// A fast scheduler has a clock that runs a thousand times as fast as usual.
type fast struct{ timed }

func (s *fast) Go(f func()) error {
	return s.Baton.Go(func() { suspend.Bind(&fastTask{suspend.Self(), s}, f) })
}

type fastTask struct {
	suspend.Task
	s *fast
}

func (t *fastTask) Spawner() suspend.Spawner { return t.s }

func TestAClockOfItsOwn(t *testing.T) {
	open := onBaton(func(b *Baton) suspend.Spawner {
		begun := time.Now()
		return &fast{timed{b,
			func(d time.Duration, f func()) func() bool { return forbidden(d/1000+1, f) },
			func() time.Time { return begun.Add(1000 * time.Since(begun)) },
		}}
	})
	passes(t, "Sleep/", open)
	passes(t, "Timers/", open)
	passes(t, "Clock/", open)
}

// The allocations of other tests do not count.
func TestNoAllocsBesideOthers(t *testing.T) {
	t.Parallel()
	var stop atomic.Bool
	others := make(chan struct{})
	go func() {
		defer close(others)
		for !stop.Load() {
			sink.Store(new([64]byte))
			time.Sleep(time.Millisecond)
		}
	}()
	suspendtest.Check(t, "11/suspend-and-resume-allocate-nothing", time.Minute, suspendtest.Direct,
		suspendtest.Open(func(testing.TB) (suspend.Spawner, func()) { return openFifo(fifo.Options{}) }), suspendtest.Options{NoAllocs: true})
	stop.Store(true)
	<-others
}

// A close that panics fails the check, and does not end the process.
func TestCloseMayPanic(t *testing.T) {
	for _, name := range []string{"Go/every-task-runs-once", "Go/close-waits-for-suspended-tasks", "Blocking/after-close"} {
		r := &recorder{TB: t, name: name}
		suspendtest.Check(r, name, time.Minute, suspendtest.Direct, suspendtest.Open(func(testing.TB) (suspend.Spawner, func()) {
			return &Baton{}, func() { panic("close fails") }
		}), suspendtest.Options{})
		require.True(t, r.failed, name)
	}
}

// The whole kit runs on a scheduler that runs no task. It fails, so it runs in another process.
func TestAHangIsWaitedForOnce(t *testing.T) {
	const variable = "BRAID_HANG"
	if os.Getenv(variable) != "" {
		suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) { return idle{}, func() {} },
			suspendtest.Deadline(100*time.Millisecond))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(string(out), "no progress within 100ms: "), "%s", out)
	require.Less(t, 30, strings.Count(string(out), "no progress within 10ms: "), "%s", out)
}

// On a starved machine, a check may take longer than its deadline. It does not fail while its steps continue: all of them
// together take longer than the deadline, and no single one does.
func TestASlowCheckIsNoHang(t *testing.T) {
	const deadline = 300 * time.Millisecond
	begun := time.Now()
	suspendtest.Check(t, "08/late-unpark-does-not-disturb-the-next-task", deadline, suspendtest.Direct,
		runs(func(s *patched, f func()) error {
			return s.Baton.Go(func() { time.Sleep(3 * time.Millisecond); f() }) // a slow task
		}), suspendtest.Options{})
	require.Less(t, deadline, time.Since(begun))
}

type idle struct{}

func (idle) Go(func()) error { return nil }
