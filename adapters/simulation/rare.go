package simulation

// Sometimes names a rare state that the test should cover. A run reaches the name when cond is true. Test reports how many seeds have
// reached each name, and fails if, after a hundred seeds or more, none has reached it. With TestOptions.Guided, further runs begin in such
// states. A nil World ignores the call.
func (w *World) Sometimes(name string, cond bool) {
	if w == nil {
		return
	}
	w.post(func() {
		if reached, known := w.marks[name]; reached || known && !cond {
			return
		}
		if w.marks == nil {
			w.marks = map[string]bool{}
		}
		if w.marks[name] = cond; cond {
			w.came = append(w.came, mark{name, w.steps})
			w.log("sometimes: " + name)
		}
	})
}

// A bug is the state of a name that was passed to Buggify. It has its own random source, so that other calls do not change its draws.
type bug struct {
	on    bool
	draws source
	salt  uint64 // the World's salt when the source was last seeded
}

// Buggify returns true for some calls in some runs, as the seed decides. The program under test should then do something correct but rare:
// a batch of one, a timer that fires early, a queue that is full. A name takes effect in a quarter of the runs. In these runs a quarter of
// its calls return true, on average. A nil World returns false.
func (w *World) Buggify(name string) (rarely bool) {
	if w == nil {
		return false
	}
	w.do(func() {
		b := w.rare[name]
		if b == nil {
			if w.rare == nil {
				w.rare = map[string]*bug{}
			}
			b = &bug{draws: source(mix(w.o.Seed, hashString(0, name)))}
			b.on = b.draws.below(4) == 0
			w.rare[name] = b
		}
		if b.salt != w.salt {
			b.salt, b.draws = w.salt, source(mix(uint64(b.draws), w.salt))
		}
		if rarely = b.on && b.draws.below(4) == 0; rarely {
			w.log("buggify: " + name)
		}
	})
	return rarely
}
