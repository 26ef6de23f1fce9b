//go:build !explore || !linux || braid_portable

package eventloop

// polling is what a reactor polls with. Builds of the model checker have an interface in its place.
type polling = *poller
