package atomicx

var offered bool

// Offer is called in a program that contains package suspendtest/atomic, which offers these types to users.
func Offer() { offered = true }

// Offered reports whether Offer was called.
func Offered() bool { return offered }
