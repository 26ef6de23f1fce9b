package atomicx

// Offered is true in a program that contains package suspendtest/atomic, which offers these types to users.
var Offered bool
