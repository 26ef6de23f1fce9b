//go:build !explore && !braid_portable

package eventloop

// system is what an fd makes system calls on. Builds of the model checker have another type.
type system = descriptor
