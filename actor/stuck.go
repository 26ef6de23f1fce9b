package actor

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
)

// Cycles of Asks. An actor with an OnStuck notes its Ask while it waits. When an Ask has waited for StuckAfter, its chain is
// followed: from the request to its home, to what that asks for, and so on. If the chain comes back, it is a cycle.
//
// The chain changes while it is followed, so it is followed twice: a chain that is the same both times was there at one moment in between.

// An asking is an Ask of an actor with an OnStuck that waits.
type asking struct {
	by       *life
	q        pending
	timer    func() bool
	reported bool // as part of a cycle; guarded by cycles
}

// cycles guards the asking of all lives. Its holder locks nothing else.
var cycles atomicx.Mutex

// stuckKey is the key by which a context finds the actor that it is of, a stuckActor.
type stuckKey struct{}

type stuckActor interface {
	lifeOf() *life
	stuckAfter(f func()) (stop func() bool)
	onStuck(chain []string)
}

// watched says how many actors there have been with an OnStuck. Without one, Ask need not look at its context.
var watched atomicx.Bool

// known returns the context for the actor's body.
func (s *Self[M]) known() context.Context {
	if s.opts == nil || s.opts.OnStuck == nil || s.opts.StuckAfter <= 0 {
		return &s.ctx
	}
	watched.Store(true)
	return &knownContext{&s.ctx, s}
}

// A knownContext carries its actor. Its AfterFunc is that of the actor's context, so its end wakes waiting tasks at once.
type knownContext struct {
	*cancelctx.Context
	of stuckActor
}

func (c *knownContext) Value(key any) any {
	if key == (stuckKey{}) {
		return c.of
	}
	return c.Context.Value(key)
}

func (s *Self[M]) stuckAfter(f func()) (stop func() bool) { return s.afterFunc(s.opts.StuckAfter, f) }
func (s *Self[M]) onStuck(chain []string)                 { s.opts.OnStuck(chain) }

// watchAsk begins to watch an Ask. It returns nil if no such actor asks.
func watchAsk(ctx context.Context, q pending) *asking {
	s, ok := ctx.Value(stuckKey{}).(stuckActor)
	if !ok {
		return nil
	}
	a := &asking{by: s.lifeOf(), q: q}
	cycles.Lock()
	a.by.who.asking = a
	cycles.Unlock()
	a.timer = s.stuckAfter(func() {
		if chain := a.cycle(); chain != nil {
			s.onStuck(chain)
		}
	})
	return a
}

// over is the end of the Ask.
func (a *asking) over() {
	if a == nil {
		return
	}
	a.timer()
	cycles.Lock()
	a.by.who.asking = nil
	cycles.Unlock()
}

// cycle returns the names of the actors in the cycle that a is part of, nil if there is none, or if it was reported.
func (a *asking) cycle() []string {
	first, second := a.chain(), a.chain()
	if len(first) == 0 || len(first) != len(second) {
		return nil
	}
	for i := range first {
		if first[i] != second[i] {
			return nil
		}
	}
	cycles.Lock()
	defer cycles.Unlock()
	if a.reported || a.by.who.asking != a {
		return nil
	}
	var names []string
	for _, x := range first {
		x.reported = true
		names = append(names, x.by.name())
	}
	return names
}

// chain follows the Asks from a on, and returns them if they come back to a.
func (a *asking) chain() (all []*asking) {
	for x := a; ; {
		all = append(all, x)
		home := x.q.call().home.Load()
		if home == nil {
			return nil
		}
		cycles.Lock()
		x = nil
		if home.at.who != nil {
			x = home.at.who.asking
		}
		cycles.Unlock()
		if x == a {
			return all
		}
		for _, seen := range all {
			if x == nil || x == seen { // a cycle without a: another one's
				return nil
			}
		}
	}
}
