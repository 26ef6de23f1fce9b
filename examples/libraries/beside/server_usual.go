package beside

import (
	"github.com/panjf2000/ants/v2"
	"github.com/panjf2000/gnet/v2"
)

// serverUsual computes its answers on an ants pool and sends them with callbacks.
type serverUsual struct {
	gnet.BuiltinEventEngine
	pool *ants.Pool
}

func (s *serverUsual) OnTraffic(c gnet.Conn) gnet.Action {
	for line := range lines(c) {
		_ = s.pool.Submit(func() { // blocks the event loop while the pool is full
			_ = c.AsyncWrite([]byte(answer(line)), nil) // a client's answers may arrive in the wrong order
		})
	}
	return gnet.None
}
