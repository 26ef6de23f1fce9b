//go:build unix

// Package processor says how much time of the processors this process has used. Tests measure it since the time of day tells
// little on a machine that does other work as well.
package processor

import (
	"syscall"
	"time"
)

// Used returns the time that the processors have spent on this process. It is 0 where the system has no getrusage.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("processor: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
