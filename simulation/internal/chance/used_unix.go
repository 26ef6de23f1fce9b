//go:build unix

package chance

import (
	"syscall"
	"time"
)

// Used returns the processor time that this process has used.
func Used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
