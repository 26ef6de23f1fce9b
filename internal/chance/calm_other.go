//go:build !linux

package chance

import "errors"

// Calm returns an error, as only Linux lets a process lower the priority of its runtime's monitor.
func Calm() error { return errors.ErrUnsupported }
