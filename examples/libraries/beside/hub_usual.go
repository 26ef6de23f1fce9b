package beside

import (
	"context"
	"sync"
)

type hubUsual struct {
	mu      sync.Mutex
	clients map[chan string]bool
	closed  bool
}

func (h *hubUsual) join() (serve func(ctx context.Context, write func(ctx context.Context, m string) error) error) {
	mine := make(chan string, 2)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients == nil {
		h.clients = map[chan string]bool{}
	}
	if h.clients[mine] = true; h.closed {
		h.dropLocked(mine)
	}
	return func(ctx context.Context, write func(ctx context.Context, m string) error) error {
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.dropLocked(mine)
		}()
		for {
			select {
			case m, ok := <-mine:
				if !ok {
					return errClosed // the hub is closed, or the client is too slow
				}
				if err := write(ctx, m); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func (h *hubUsual) dropLocked(client chan string) {
	if h.clients[client] {
		delete(h.clients, client)
		close(client)
	}
}

func (h *hubUsual) say(_ context.Context, m string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errClosed
	}
	for client := range h.clients {
		select {
		case client <- m:
		default:
			h.dropLocked(client)
		}
	}
	return nil
}

func (h *hubUsual) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for client := range h.clients {
		h.dropLocked(client)
	}
}
