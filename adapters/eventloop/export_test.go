package eventloop

// RefuseRings makes l one whose system refuses io_uring. It comes before the first Open.
func RefuseRings(l *Loop) { l.rings.made = true }
