//go:build unix

// Package processor measures the CPU time of this process. Tests measure CPU time instead of elapsed time, which also depends on other
// processes.
package processor

import (
	"syscall"
	"time"
)

// Used returns the CPU time that this process has used. It returns 0 on systems without getrusage.
func Used() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

// UsedWithChildren returns the CPU time that this process and its children that have ended have used.
func UsedWithChildren() time.Duration { return Used() + usedBy(syscall.RUSAGE_CHILDREN) }

func usedBy(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic("processor: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
