package beside

import (
	"context"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A conns is a pool of at most n connections. It reuses each connection that a caller puts back, unless the connection is broken.
type conns struct {
	dial func(ctx context.Context) (conn, error)
	idle *chanx.Chan[conn]
	room *semaphore.Semaphore
}

func newConns(n int, dial func(ctx context.Context) (conn, error)) *conns {
	return &conns{dial, chanx.New[conn](n), semaphore.New(int64(n))}
}

func (p *conns) get(ctx context.Context) (c conn, err error) {
	idle, room := suspend.CaseOf(p.idle.RecvOp()), suspend.CaseOf(p.room.AcquireOp(1))
	switch won, err := suspend.SelectOrdered(ctx, idle, room); won {
	case idle:
		return idle.Result()
	case room:
		if _, err = room.Result(); err == nil {
			if c, err = p.dial(ctx); err != nil {
				p.room.Release(1)
			}
		}
		return c, err
	default:
		return c, err
	}
}

func (p *conns) put(c conn, broken bool) {
	if !broken {
		if ok, _ := p.idle.TrySend(c); ok {
			return
		}
	}
	c.close()
	p.room.Release(1)
}

// close makes waiting calls of get fail, and closes the idle connections. A connection that is in use is closed when it is put back.
func (p *conns) close() {
	_, _ = p.idle.Close(), p.room.Close()
	for c := range p.idle.All(context.Background()) {
		c.close()
	}
}
