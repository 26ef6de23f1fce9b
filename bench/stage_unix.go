//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is that of the whole process, user and system.
func processorTime() time.Duration {
	var u syscall.Rusage
	must(0, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
