package beside

import (
	"context"
	"sync"
)

type connsUsual struct {
	dial   func(ctx context.Context) (conn, error)
	idle   chan conn
	room   chan struct{}
	closed chan struct{}
	mu     sync.Mutex // guards the field over; otherwise a put might add to p.idle after a close
	over   bool
}

func newConnsUsual(n int, dial func(ctx context.Context) (conn, error)) *connsUsual {
	return &connsUsual{dial: dial, idle: make(chan conn, n), room: make(chan struct{}, n), closed: make(chan struct{})}
}

func (p *connsUsual) get(ctx context.Context) (c conn, err error) {
	select {
	case c := <-p.idle:
		return c, nil
	default:
	}
	select {
	case <-p.closed:
		return c, errClosed
	default:
	}
	select {
	case c := <-p.idle:
		return c, nil
	case p.room <- struct{}{}:
		if c, err = p.dial(ctx); err != nil {
			<-p.room
		}
		return c, err
	case <-p.closed:
		return c, errClosed
	case <-ctx.Done():
		return c, ctx.Err()
	}
}

func (p *connsUsual) put(c conn, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !broken && !p.over {
		p.idle <- c
		return
	}
	c.close()
	<-p.room
}

func (p *connsUsual) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	close(p.closed)
	for {
		select {
		case c := <-p.idle:
			c.close()
		default:
			return
		}
	}
}
