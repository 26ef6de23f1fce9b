package actor

import "context"

// watchAsk records an Ask and starts its timer. It returns nil if the caller's actor has no OnStuck.
func watchAsk(ctx context.Context, q pending) *asking {
	by := actorOf(ctx)
	if by == nil || by.who == nil || by.who.stuck == nil {
		return nil
	}
	s := by.who.stuck
	a := &asking{by: by, q: q}
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

// over deletes the record of the Ask and stops its timer. a may be nil.
func (a *asking) over() {
	if a == nil {
		return
	}
	a.timer()
	cycles.Lock()
	a.by.who.asking = nil
	cycles.Unlock()
}

// cycle returns the names of the actors in the cycle of which a is part. It returns nil if there is no such cycle, or if it was already
// reported.
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

// chain follows the chain of requests that begins with a. It returns the Asks of the chain if it leads back to a, and nil otherwise.
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
			if x == nil || x == seen { // the chain ends, or leads to a cycle that does not contain a
				return nil
			}
		}
	}
}
