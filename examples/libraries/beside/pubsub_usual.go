package beside

import (
	"context"
	"maps"
	"slices"
	"sync"
)

type pubsubUsual struct {
	mu     sync.Mutex
	topics map[string]*topicUsual
}

type topicUsual struct {
	turn chan struct{} // a channel of capacity 1, which locks out other publishers
	mu   sync.Mutex
	subs map[*subUsual]bool
}

type subUsual struct {
	values chan int
	gone   chan struct{}
}

func (p *pubsubUsual) topic(name string) *topicUsual {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.topics[name] == nil {
		if p.topics == nil {
			p.topics = map[string]*topicUsual{}
		}
		p.topics[name] = &topicUsual{turn: make(chan struct{}, 1), subs: map[*subUsual]bool{}}
	}
	return p.topics[name]
}

func (p *pubsubUsual) publish(ctx context.Context, topic string, v int) error {
	t := p.topic(topic)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	t.mu.Lock()
	subs := slices.Collect(maps.Keys(t.subs))
	t.mu.Unlock()
	for _, s := range subs {
		select {
		case s.values <- v:
		case <-s.gone:
		case <-ctx.Done():
			return ctx.Err() // only some of the subscribers have received v
		}
	}
	return nil
}

func (p *pubsubUsual) subscribe(topic string) (recv func(ctx context.Context) (int, error), leave func()) {
	t, s := p.topic(topic), &subUsual{make(chan int, 1), make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs[s] = true
	recv = func(ctx context.Context) (int, error) {
		select {
		case v := <-s.values:
			return v, nil
		case <-s.gone:
			return 0, errClosed
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return recv, sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subs, s)
		close(s.gone)
	})
}
