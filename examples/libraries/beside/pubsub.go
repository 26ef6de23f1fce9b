package beside

import (
	"context"
	"sync"

	"github.com/braidgo/braid/broadcast"
)

// A pubsub sends each value to all subscribers of a topic. A publisher waits for slow subscribers.
type pubsub struct{ topics sync.Map }

func (p *pubsub) topic(name string) *broadcast.Topic[int] {
	t, _ := p.topics.LoadOrStore(name, broadcast.New[int]())
	return t.(*broadcast.Topic[int])
}

func (p *pubsub) publish(ctx context.Context, topic string, v int) error {
	return p.topic(topic).Publish(ctx, v)
}

// subscribe adds a subscriber to a topic. A subscriber that stops receiving must call the function leave; otherwise publish blocks.
func (p *pubsub) subscribe(topic string) (recv func(ctx context.Context) (int, error), leave func()) {
	s := p.topic(topic).Subscribe(1, broadcast.Wait)
	return s.Recv, s.Close
}
