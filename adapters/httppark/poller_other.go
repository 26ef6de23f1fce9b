//go:build !linux

package httppark

import (
	"errors"
	"syscall"
)

// A poller is not to be had here, so that nothing is parked.
type poller struct{}

type event struct{ place, serial int32 }

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (*poller) watch(syscall.RawConn, event, bool) error { return errors.ErrUnsupported }
func (*poller) wait() ([]event, error)                   { return nil, errors.ErrUnsupported }
func (*poller) close()                                   {}
