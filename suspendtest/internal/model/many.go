package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// Watched is the interface of an object checked with Watches.
type Watched interface {
	Load() watch.State[int]
	Store(v int) error
	Modify(f func(int) int) (watch.State[int], error)
	Changed(ctx context.Context, seen uint64) (watch.State[int], error)
	ChangedOp(seen uint64) suspend.Op[watch.State[int]]
	Close() error
}

// Watches returns the Spec of a watched value.
func Watches(anew func() Watched) Spec {
	return Spec{Name: "watch", New: func(Choose) *System {
		w, closed := anew(), watch.ErrClosed.Error()
		state := func(s watch.State[int], err error) string {
			return result(fmt.Sprint("=", s.Value, "@", s.Version), err)
		}
		return &System{Title: "w is a watched value", Probe: []Call{{0, 1, 0}, {0, 0, 999}, {0, 1, 0}}, Parts: []Part{{Name: "w", Model: &watchModel{}, Kinds: []Kind{
			{Name: "Store", Fresh: true, Try: true, Seen: "ok," + closed, Run: func(_ context.Context, v int) string { return result("ok", w.Store(v)) }},
			{Name: "Load", Try: true, Run: func(context.Context, int) string { return state(w.Load(), nil) }},
			{Name: "Changed", Args: 3, Seen: "=@," + closed,
				Run: func(ctx context.Context, seen int) string { return state(w.Changed(ctx, uint64(seen-1))) },
				Op: func(seen int) suspend.Op[string] {
					return suspend.Map(w.ChangedOp(uint64(seen-1)), func(s watch.State[int], err error) (string, error) { return state(s, err), nil })
				}},
			{Name: "Close", Try: true, Seen: "ok," + closed, Run: func(context.Context, int) string { return result("ok", w.Close()) }},
			{Name: "Modify", Try: true, Seen: "=@," + closed, Run: func(context.Context, int) string {
				return state(w.Modify(func(n int) int { return n + 1 }))
			}},
		}}}}
	}}
}

// RealWatched returns a Value of package watch.
func RealWatched() Watched { return watch.New(0) }

type watchModel struct {
	watch.State[int]
	closed bool
}

func (m *watchModel) Copy() Object { c := *m; return &c }

func (m *watchModel) Serve(w *World) bool {
	for _, o := range w.Waiting() {
		now := fmt.Sprint("=", m.Value, "@", m.Version)
		switch changed := o.Kind == "Changed"; {
		case o.Kind == "Load", changed && m.Version != uint64(o.Arg-1):
			w.End(o, now)
		case changed && !m.closed:
			continue
		case m.closed:
			w.End(o, watch.ErrClosed.Error())
		case o.Kind == "Store":
			m.Value, m.Version = o.Arg, m.Version+1
			w.End(o, "ok")
		case o.Kind == "Modify":
			m.Value, m.Version = m.Value+1, m.Version+1
			w.End(o, fmt.Sprint("=", m.Value, "@", m.Version))
		default:
			m.closed = true
			w.End(o, "ok")
		}
		return true
	}
	return false
}

// Topic is the interface of an object checked with Topics.
type Topic interface {
	Publish(ctx context.Context, v int) error
	PublishOp(v int) suspend.Op[struct{}]
	Close() error
	Subscribe(n int, policy broadcast.Policy) *broadcast.Subscription[int]
}

// Topics returns the Spec of a Topic with two subscriptions.
func Topics(anew func() Topic) Spec {
	return Spec{Name: "broadcast", New: func(choose Choose) *System {
		t, closed := anew(), broadcast.ErrClosed.Error()
		m := &topicModel{subs: make([]subModel, 2)}
		part := Part{Name: "t", Model: m, Kinds: []Kind{
			{Name: "Publish", Fresh: true, Seen: "ok," + closed,
				Run: func(ctx context.Context, v int) string { return result("ok", t.Publish(ctx, v)) },
				Op:  func(v int) suspend.Op[string] { return done(t.PublishOp(v)) }},
			{Name: "Close", Try: true, Seen: "ok," + closed, Run: func(context.Context, int) string { return result("ok", t.Close()) }},
		}}
		title := "t is a Topic with subscriptions"
		for i := range m.subs {
			s := &m.subs[i]
			s.room, s.policy = 1+choose(2), broadcast.Policy(choose(4))
			sub := t.Subscribe(s.room, s.policy)
			title += fmt.Sprintf(" %d of %d, %s", i, s.room, [...]string{"Wait", "DropOldest", "DropSubscriber", "Lag"}[s.policy])
			part.Kinds = append(part.Kinds,
				Kind{Name: fmt.Sprint("Recv", i), Seen: "=," + closed,
					Run: func(ctx context.Context, _ int) string { return value(sub.Recv(ctx)) },
					Op:  func(int) suspend.Op[string] { return valued(sub.RecvOp()) }},
				Kind{Name: fmt.Sprint("Close", i), Try: true, Run: func(context.Context, int) string { sub.Close(); return "ok" }})
		}
		return &System{Title: title, Parts: []Part{part}, Probe: []Call{{0, 1, 0}, {0, 2, 0}, {0, 2, 0}, {0, 2, 0}, {0, 4, 0}, {0, 4, 0}, {0, 4, 0}, {0, 0, 999}}}
	}}
}

// RealTopic returns a Topic of package broadcast.
func RealTopic() Topic { return broadcast.New[int]() }

type topicModel struct {
	closed bool
	subs   []subModel
}

type subModel struct {
	room   int
	policy broadcast.Policy
	buffer []int
	gap    int
	ended  string
}

func (t *topicModel) Copy() Object { c := *t; c.subs = slices.Clone(t.subs); return &c }

func (t *topicModel) Serve(w *World) bool {
	for _, o := range w.Waiting() {
		switch o.Kind {
		case "Publish":
			if !t.publish(w, o) {
				continue
			}
			return true
		case "Close":
			if t.closed {
				w.End(o, broadcast.ErrClosed.Error())
				return true
			}
			t.closed = true
			for i := range t.subs {
				if s := &t.subs[i]; s.ended == "" {
					s.ended = broadcast.ErrClosed.Error()
				}
			}
			w.End(o, "ok")
			return true
		}
		switch s := &t.subs[o.Kind[len(o.Kind)-1]-'0']; {
		case o.Kind[0] == 'C':
			s.ended, s.buffer, s.gap = broadcast.ErrClosed.Error(), nil, 0
			w.End(o, "ok")
		case s.gap > 0:
			w.End(o, (&broadcast.LaggedError{Missed: uint64(s.gap)}).Error())
			s.gap = 0
		case len(s.buffer) > 0:
			w.End(o, equals(s.buffer[0]))
			s.buffer = s.buffer[1:]
		case s.ended != "":
			w.End(o, s.ended)
		default:
			continue
		}
		return true
	}
	return false
}

func (t *topicModel) publish(w *World, o Waiter) bool {
	if t.closed {
		w.End(o, broadcast.ErrClosed.Error())
		return true
	}
	if slices.ContainsFunc(t.subs, func(s subModel) bool {
		return s.ended == "" && s.policy == broadcast.Wait && len(s.buffer) == s.room
	}) {
		return false
	}
	for i := range t.subs {
		switch s := &t.subs[i]; {
		case s.ended != "":
		case len(s.buffer) < s.room:
			s.buffer = append(slices.Clip(s.buffer), o.Arg)
		case s.policy == broadcast.DropOldest || s.policy == broadcast.Lag:
			s.buffer = append(slices.Clone(s.buffer[1:]), o.Arg)
			if s.policy == broadcast.Lag {
				s.gap++
			}
		default:
			s.ended = broadcast.ErrSlow.Error()
		}
	}
	w.End(o, "ok")
	return true
}
