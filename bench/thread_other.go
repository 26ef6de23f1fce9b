//go:build !linux

package main

import "time"

var threadBegun = time.Now()

// threadTime is the time so far, where that of a thread is not known.
func threadTime() time.Duration { return time.Since(threadBegun) }
