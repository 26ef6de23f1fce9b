//go:build !unix

package main

import "time"

var processBegun = time.Now()

// cpuTime is the time so far, where that of the processors is not known.
func cpuTime() time.Duration { return time.Since(processBegun) }
