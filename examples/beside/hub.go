package beside

import (
	"context"

	"github.com/braidgo/braid/broadcast"
)

// A hub passes each message to all clients. A slow client is dropped so that it delays nobody, and its serve returns an error.
type hub struct{ messages broadcast.Topic[string] }

// join returns the service of a client, which gets the messages from now on.
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
