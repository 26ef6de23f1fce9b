//go:build !unix

package main

import "time"

var processStart = time.Now()

// processorTime is wall time where nothing better is known.
func processorTime() time.Duration { return time.Since(processStart) }
