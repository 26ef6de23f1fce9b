package simulation_test

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// msync makes a mapping durable.
func msync(p []byte) error { return unix.Msync(p, syscall.MS_SYNC) }
