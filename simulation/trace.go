package simulation

import (
	"fmt"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// caller returns the host and number of the running task, or of the calling guest, whose number is negative. For a timer, a segment or a
// callback it returns nil and 0.
func (x *outside) caller() (*place, int) {
	if t := x.current; t != nil {
		if t.by != nil {
			return &t.host.place, -t.by.n
		}
		return &t.host.place, t.id
	}
	return x.acting.host.at(), -x.acting.n
}

// note adds the event e to the hash, and to the trace if there is a trace.
func (w *World) note(e event) {
	if w.tearingDown {
		return
	}
	h := w.hash ^ uint64(w.clock.now)
	h = draws.Mix(h, uint64(e.kind)<<56^uint64(e.host.number())<<28^uint64(e.of.number()))
	h = draws.Mix(h, uint64(e.task)<<32^uint64(e.n))
	if e.data != 0 {
		h = draws.Mix(h, e.data)
	}
	w.hash = h
	if len(w.dice.forks) > 0 {
		w.dice.fork(w.steps)
	}
	e.at = w.clock.now
	if w.record.Tells() {
		if !w.addScene(w.steps, e) {
			w.fail(seeds.ErrLonger)
		}
	}
	if w.o.watch != nil {
		w.o.watch(w, e)
	}
	if w.o.Trace != nil && !e.quiet {
		_, _ = fmt.Fprintf(w.o.Trace, "%v\n", e)
	}
}

// traced reports whether a trace or a watch function receives the events.
func (o *Options) traced() bool { return o.watch != nil || o.Trace != nil }

func (w *World) log(text string) {
	host, id := w.caller()
	w.note(event{kind: logged, host: host, task: id, data: draws.HashString(0, text), text: text})
}
