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

// A watcher detects a Close that does not end, and a process without progress. The watcher reports either of them when
// it has lasted for the duration in the field after, and again each time this duration has doubled.
type watcher struct {
	after  time.Duration
	every  time.Duration
	report func(string)
	check  func(now time.Time)
	moves  [2]uint64 // the numbers of events and of waits at the last check
	still  time.Time // the time since which both numbers have not changed
	told   time.Duration
	closes map[uint64]time.Duration // the duration of each Close at its last report

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// startWatcher starts a watcher, which runs until stop is called.
func startWatcher(o Options) (stop func()) {
	w := &watcher{after: o.StuckAfter, report: o.OnStuck, still: time.Now(), closes: map[uint64]time.Duration{}}
	quiet := w.after < 0
	if w.after <= 0 {
		w.after = defaultStuckAfter
	}
	if w.report == nil {
		w.report = func(text string) { fmt.Fprintln(os.Stderr, text) }
	}
	w.every = max(w.after/4, time.Millisecond)
	w.check = w.inspect
	if quiet {
		w.check = func(time.Time) { ledger.Forget() } // otherwise the records of ended waits would keep their schedulers in memory
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.every, w.tick)
	return w.stop
}

// tick runs a check and resets the timer. The timer calls tick, so that no goroutine sleeps between two checks.
func (w *watcher) tick() {
	w.check(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(w.every)
	}
}

// stop stops the watcher. The function in w.report may call it.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

func (w *watcher) inspect(now time.Time) {
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
		w.report(fmt.Sprintf("braid: no task has made progress for %s\n%s", ago(now, w.still), Take()))
	}
}

// closing reports whether an operation waits for tasks to end.
func closing(operation string) bool {
	switch operation[strings.LastIndexByte(operation, '.')+1:] {
	case "Close", "Shutdown":
		return true
	}
	return false
}

// outside reports whether the clock or a connection may end a wait. Such a wait may last, but the process is not stuck.
func outside(w ledger.Wait) bool {
	for _, f := range w.For {
		if strings.HasPrefix(kindOf(f.Kind), "a ") {
			return true
		}
	}
	c := callOf(w.Stack)
	return strings.HasPrefix(c.primitive, "eventloop.") || strings.HasPrefix(c.primitive, "simulation.") || strings.HasPrefix(c.primitive, "rate.") ||
		c.primitive == "suspend.Sleep" || c.primitive == "suspend.BlockingValue" || c.primitive == "suspend.Blocking"
}

// closeText lists the tasks of all schedulers from the package that is being closed. If there are no such tasks, it lists
// all tasks.
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

// describe lists the locks that a goroutine holds, and the numbers of their waiters, for the reports of StallAfter.
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
