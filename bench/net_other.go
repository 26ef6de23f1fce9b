//go:build !linux

package main

import (
	"errors"
	"time"
)

// The rows of the event loop are for the system that it is made for.
var netRows []row

func driveHTTP(string, int, time.Duration) (float64, error) { return 0, errors.ErrUnsupported }
