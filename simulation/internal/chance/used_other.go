//go:build !unix

package chance

import "time"

var began = time.Now()

// Used returns the real time since the process has begun, because this system does not say how much processor time the process has used.
func Used() time.Duration { return time.Since(began) }
