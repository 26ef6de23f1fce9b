//go:build !linux

package main

import (
	"errors"
	"time"
)

// The rows and curves of the event loop are for the system that it is made for.
var (
	netRows      []row
	systemCurves []curve
)

func driveFib(string, float64, time.Duration) (fibReport, error) {
	return fibReport{}, errors.ErrUnsupported
}

func serveFib([]string) error { return errors.ErrUnsupported }

func availableMemory() uint64 { return 0 }

func driveTCP(string, int, time.Duration, string, string, int) (float64, error) {
	return 0, errors.ErrUnsupported
}
