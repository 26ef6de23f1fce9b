//go:build !explore || !linux || braid_portable

package eventloop

// polling is the type of a reactor's poller. In builds for the model checker it is an interface.
type polling = *poller
