package beside

import (
	"github.com/panjf2000/ants/v2"
	"github.com/panjf2000/gnet/v2"
)

// serverUsual computes on a pool of ants and answers by callbacks.
type serverUsual struct {
	gnet.BuiltinEventEngine
	pool *ants.Pool
}

func (s *serverUsual) OnTraffic(c gnet.Conn) gnet.Action {
	for line := range lines(c) {
		_ = s.pool.Submit(func() { // blocks the event loop while the pool is full
			_ = c.AsyncWrite([]byte(answer(line)), nil) // a short request overtakes a long one of the same client
		})
	}
	return gnet.None
}
