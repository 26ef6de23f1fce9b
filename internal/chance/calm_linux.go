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

// spares is how many threads Calm makes, so that the monitor, which makes a thread where none is idle, need not pass its priority on to it.
const spares = 16

// Calm gives the thread of the runtime's monitor the priority SCHED_IDLE, for the rest of the process: the way back needs a privilege.
// The monitor takes the processor from a goroutine that has run for 10 ms by the clock on the wall, even if the machine has run another
// process for most of that time. With this priority it does not run on such a machine, and goroutines of one P keep their order.
//
// The monitor is the thread that sleeps in the kernel while a goroutine runs; Calm returns an error if /proc does not show exactly one. A
// process with more than 16 blocked system calls at once may get further threads with SCHED_IDLE.
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
			ready.Wait() // each needs a separate thread
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

// threadsIn returns the threads of the process that are in a system call.
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
