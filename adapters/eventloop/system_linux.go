//go:build !explore && !braid_portable

package eventloop

// system makes the system calls of an fd. Builds for the model checker use another type.
type system = descriptor
