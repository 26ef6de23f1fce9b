//go:build unix

// Package processor says how much time of the processors this process has used. Tests measure it instead of the time of day, which also
// counts the other work of a machine.
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
