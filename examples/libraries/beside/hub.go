package beside

import (
	"context"

	"github.com/braidgo/braid/broadcast"
)

// A hub sends each message to all clients. It drops slow clients, because they would delay other clients. The serve function of a dropped
// client returns an error.
type hub struct{ messages broadcast.Topic[string] }

// join adds a client, and returns a serve function that writes all later messages to the client.
func (h *hub) join() (serve func(ctx context.Context, write func(ctx context.Context, m string) error) error) {
	mine := h.messages.Subscribe(2, broadcast.DropSubscriber)
	return func(ctx context.Context, write func(ctx context.Context, m string) error) error {
		defer mine.Close()
		for m := range mine.All(ctx) {
			if err := write(ctx, m); err != nil {
				return err
			}
		}
		_, err := mine.Recv(ctx)
		return err
	}
}

func (h *hub) say(ctx context.Context, m string) error { return h.messages.Publish(ctx, m) }

func (h *hub) close() { _ = h.messages.Close() }
