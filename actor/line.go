package actor

import (
	"sync"

	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/internal/gid"
)

// A line is an actor that passes its messages on to an actor in another process: see package natsactor, which calls carrier.SetLine.
// Few actors are lines, so what is known about them is in maps, and the other actors need no room for it.
var (
	lines  sync.Map // from a line's *life to a function that watches the actor in the other process
	askers sync.Map // from the *call of an Ask to a line to the goroutine that waits in this Ask
)

func setLine(a any, watch func(tell func(err error)) (stop func())) (drop func()) {
	l := a.(Actor).lifeOf()
	lines.Store(l, watch)
	l.line = true
	return func() { lines.Delete(l) }
}

// watchFar calls tell when the actor at the other end of the line has ended, on any goroutine.
func (l *life) watchFar(tell func(err error)) (stop func()) {
	watch, ok := lines.Load(l)
	if !ok { // the line has ended, and its own watchers are notified
		return func() {}
	}
	return watch.(func(func(error)) func())(tell)
}

// recordAsker records that the calling goroutine waits in an Ask, until the function that recordAsker returns is called.
func recordAsker(c *call) (forget func()) {
	askers.Store(c, gid.Get())
	return func() { askers.Delete(c) }
}

func (c carried) Asker() int64 {
	id, _ := askers.Load(c.q.call())
	asker, _ := id.(int64)
	return asker
}

func (c carried) Home(a any) bool {
	e := c.q.call().home.Load()
	return e == nil || e.at == a.(Actor).lifeOf()
}

func (c carried) Asked() bool { return c.q.call().phase.Load() != fresh }

func init() {
	carrier.Provide(func(m any) (carrier.Carrier, bool) {
		q := asRequest(m)
		return carried{q}, q != nil
	}, setLine, func(a any) int64 { return a.(Actor).lifeOf().task.Load() })
}
