//go:build !explore || !linux || braid_portable

package eventloop

// polling is the poller of a reactor. Builds of the model checker have an interface in its place.
type polling = *poller
