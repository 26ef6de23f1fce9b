package stage

// addWait adds a wait. The argument a is nil if the wait is unknown.
func (w *waits) addWait(a *asking) {
	w.blocked++
	if a != nil {
		a.index = len(w.asking)
		w.asking = append(w.asking, a)
	}
}

func (w *waits) dropWait(a *asking) {
	w.blocked--
	if a != nil {
		last := len(w.asking) - 1
		w.asking[a.index] = w.asking[last]
		w.asking[a.index].index = a.index
		w.asking[last] = nil
		w.asking = w.asking[:last]
	}
}

// moved records that the task of a is in the queue of c, or waits for room in c.
func (a *asking) moved(c *core) {
	a.at.Store(c)
	a.in.Store(c)
}

// suspect makes the next call of unlockAndPay examine a, unless a is nil.
func (p *Pool) suspect(a *asking) {
	if a != nil {
		p.suspects = &suspect{a, p.suspects}
	}
}

// lose adds a suspect if every handler of c waits and no slot is free. Call lose after each change that may have this effect: a
// handler or a hold has ended, the width has shrunk, or a task was given up.
func (c *core) lose() {
	if n := len(c.asking); n > 0 && n == c.taken && c.free() <= 0 {
		c.pool.suspect(c.asking[0])
	}
}

// block gives back the permit of a handler of c that is going to wait; otherwise waiting handlers could hold all permits. The
// argument a is the wait, or nil if the wait is unknown. goOn takes the permit again.
func (c *core) block(a *asking) {
	c.pool.guard.Lock()
	c.addWait(a)
	c.pool.suspect(a)
	c.pool.running--
	c.pool.unlockAndPay()
}

func (c *core) goOn(a *asking) {
	c.pool.guard.Lock()
	c.dropWait(a)
	c.pool.running++
	c.pool.guard.Unlock()
}

// waits reports whether a is in a.from.asking, that is, whether its handler still waits.
func (a *asking) waits() bool {
	return a.index < len(a.from.asking) && a.from.asking[a.index] == a
}
