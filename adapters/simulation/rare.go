package simulation

// Sometimes says that cond holds in some runs: that the scenario comes to a rare state which it is about. A Test reports in how many seeds
// each name was reached, and fails if no seed, of a hundred or more, has reached a name. With TestOptions.Guided further runs begin there.
// A nil World ignores the call.
func (w *World) Sometimes(name string, cond bool) {
	if w == nil {
		return
	}
	w.tell(func() {
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

// A bug is a name of Buggify. Its draws are its own, so that other calls do not move them.
type bug struct {
	on    bool
	draws source
	salt  uint64 // the World's salt that draws has taken in
}

// Buggify reports true at some calls of some runs, by the seed. There the program under test takes a way that is right and rare: a batch of
// one, a timer that fires early, a queue that is full. A name is on in a quarter of the runs, and then each fourth call is true, on
// average. A nil World reports false.
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
