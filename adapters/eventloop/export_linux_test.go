//go:build !braid_portable

package eventloop

import "golang.org/x/sys/unix"

// DeliverInput delivers an event to c, as the reactor does.
func DeliverInput(c *Conn) { c.fd.event(unix.EPOLLIN) }
