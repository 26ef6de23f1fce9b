//go:build !linux

package chance

import "errors"

// Calm returns an error, because only Linux has SCHED_IDLE.
func Calm() error { return errors.ErrUnsupported }
