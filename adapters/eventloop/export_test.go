package eventloop

// RefuseRings makes l behave as if the system had no io_uring. It must be called before the first Open.
func RefuseRings(l *Loop) { l.rings.made = true }
