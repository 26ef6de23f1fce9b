package chance

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// spares is the number of idle threads that Calm creates. The monitor makes a thread if none is idle, and the new thread would inherit
// its priority.
const spares = 16

// Calm gives the thread of the runtime's monitor (sysmon) the scheduling policy SCHED_IDLE, for the rest of the process, because a
// change back needs a privilege. The monitor preempts a goroutine that has run for 10 ms of wall-clock time, even if the machine has
// run another process for most of that time. With SCHED_IDLE, the monitor does not run on such a busy machine, so that the goroutines
// of one P keep their order.
//
// Calm assumes that the monitor is the only thread that sleeps in nanosleep while a goroutine runs. It returns an error if /proc does
// not show exactly one such thread. If more than 16 system calls block at the same time, further threads may get SCHED_IDLE.
func Calm() error { return calm() }

var calm = sync.OnceValue(func() error {
	if _, err := os.ReadFile("/proc/thread-self/syscall"); err != nil {
		return err
	}
	var ready, done sync.WaitGroup
	ready.Add(spares)
	for range spares {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait() // each goroutine has a separate thread here
		})
	}
	done.Wait()
	for begin := time.Now(); time.Since(begin) < 5*time.Second; { // the monitor may be awake
		if monitor := threadsIn(unix.SYS_NANOSLEEP); len(monitor) == 1 {
			return unix.SchedSetAttr(monitor[0], &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0)
		}
	}
	return errors.New("chance: the thread of the runtime's monitor was not found")
})

// threadsIn returns the ids of the process's threads that are in the system call with this number.
func threadsIn(call int) (threads []int) {
	all, _ := os.ReadDir("/proc/self/task")
	for _, e := range all {
		text, _ := os.ReadFile("/proc/self/task/" + e.Name() + "/syscall")
		if id, err := strconv.Atoi(e.Name()); err == nil && strings.HasPrefix(string(text), strconv.Itoa(call)+" ") {
			threads = append(threads, id)
		}
	}
	return threads
}
