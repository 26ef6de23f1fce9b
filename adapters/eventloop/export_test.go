package eventloop

import (
	"context"
	"time"
)

// SleepOn waits as a Dial does while the backlog of a unix socket is full.
func SleepOn(ctx context.Context, l *Loop, d time.Duration) error {
	return l.pick().timers.sleep(ctx, d)
}

// RefuseRings makes l behave as if the system had no io_uring. It must be called before the first Open.
func RefuseRings(l *Loop) { l.rings.made = true }
