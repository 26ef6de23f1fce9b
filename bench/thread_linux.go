package main

import (
	"syscall"
	"time"
)

// threadTime is the processor time of the calling thread so far, to which the caller is locked.
func threadTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
