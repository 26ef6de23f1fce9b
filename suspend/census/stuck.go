package census

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/ledger"
)

const defaultStuckAfter = 10 * time.Second

// A watcher looks for a Close that does not end, and for a process in which nothing moves. Each is reported once it has lasted for after, and
// again whenever that time has doubled.
type watcher struct {
	after  time.Duration
	every  time.Duration
	report func(string)
	moves  [2]uint64 // the numbers of events and of waits at the last look
	still  time.Time // both numbers are the same since then
	told   time.Duration
	closes map[uint64]time.Duration // how long each Close had lasted when it was reported

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// watch watches until stop.
func watch(o Options) (stop func()) {
	if o.StuckAfter < 0 {
		return func() {}
	}
	w := &watcher{after: o.StuckAfter, report: o.OnStuck, still: time.Now(), closes: map[uint64]time.Duration{}}
	if w.after == 0 {
		w.after = defaultStuckAfter
	}
	if w.report == nil {
		w.report = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	w.every = max(w.after/4, time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.every, w.tick)
	return w.stop
}

// tick is called by the timer, so that no goroutine sleeps between two looks.
func (w *watcher) tick() {
	w.look(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(w.every)
	}
}

// stop may be called by a report.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

func (w *watcher) look(now time.Time) {
	_, waits := ledger.Read()
	if moves := [2]uint64{ledger.Moves(), uint64(len(waits))}; moves != w.moves {
		w.moves, w.still, w.told = moves, now, 0
	}
	lasts := now.Sub(w.still)
	closes := map[uint64]time.Duration{}
	for i := range waits {
		if x := &waits[i]; now.Sub(x.Since) >= w.after {
			if c := callOf(x.Stack); closing(c.operation) {
				d := now.Sub(x.Since)
				if closes[x.Seq] = w.closes[x.Seq]; d >= 2*closes[x.Seq] {
					closes[x.Seq] = d
					w.report(closeText(now, x, c))
				}
			}
		}
	}
	w.closes = closes
	if lasts >= w.after && lasts >= 2*w.told && len(closes) == 0 && len(waits) > 0 && !slices.ContainsFunc(waits, outside) {
		w.told = lasts
		w.report(fmt.Sprintf("braid: nothing has moved for %s\n%s", ago(now, w.still), Take()))
	}
}

// closing reports whether an operation waits for tasks to end.
func closing(operation string) bool {
	switch operation[strings.LastIndexByte(operation, '.')+1:] {
	case "Close", "CloseContext", "Shutdown":
		return true
	}
	return false
}

// outside reports whether a wait may be ended by the clock or by a connection: it may last, but the process is
// not stuck.
func outside(w ledger.Wait) bool {
	for _, f := range w.For {
		if strings.HasPrefix(kindOf(f.Kind), "a ") {
			return true
		}
	}
	c := callOf(w.Stack)
	return strings.HasPrefix(c.primitive, "eventloop.") || strings.HasPrefix(c.primitive, "simulation.") || strings.HasPrefix(c.primitive, "rate.") ||
		c.primitive == "suspend.Sleep" || c.primitive == "suspend.Call" || c.primitive == "suspend.Blocking"
}

// closeText lists the tasks of the schedulers of the package that is being closed, or
// all tasks if there is none.
func closeText(now time.Time, closing *ledger.Wait, c call) string {
	s := Take()
	folder, _, _ := strings.Cut(c.operation, ".")
	of := s
	of.Tasks = slices.DeleteFunc(slices.Clone(s.Tasks), func(t Task) bool { return t.Scheduler != folder })
	if len(of.Tasks) == 0 {
		of = s
	}
	return fmt.Sprintf("braid: %s has waited for %s, at %s\n%s", c.operation, ago(now, closing.Since), c.at, of)
}

// describe lists the locks that a goroutine holds, and how many wait for them: for the reports of StallAfter.
func describe(goroutine int64) string {
	s := Take()
	var lines []string
	for _, t := range s.Tasks {
		if t.Goroutine == goroutine {
			for _, h := range t.Holds {
				lines = append(lines, "census: it "+h.text(s.At))
			}
		}
	}
	return strings.Join(lines, "\n")
}
