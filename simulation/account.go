package simulation

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/simulation/internal/chance"
)

// This file finds out, for the text of an error, what each task and each guest was doing.

// account adds details to err: the seed, the step and the time, the place where each task waits, and each wait without a task.
func (w *World) account(err error) error {
	stacks := maps.Collect(gid.Stacks())
	var b strings.Builder
	for _, h := range w.hosts {
		for n := h.tasks.First(); n != nil; n = n.Next() {
			t := n.Value
			state := "waits"
			switch {
			case t == w.current:
				state = "runs"
			case h.paused:
				state = "is paused"
			case t.Why() == coro.Yielded || t.mark != parked:
				state = "could run"
			}
			fmt.Fprintf(&b, "\n\n%s %s:\n%s", taskName(&h.place, t.id), state, frame(frames(stacks[t.ID()])))
		}
		for n := h.holds.First(); n != nil; n = n.Next() {
			fmt.Fprintf(&b, "\n\n%s is held by a wait without a task, which began at:\n%s", cmp.Or(h.name, "the World"), frame(n.Value.stack()))
		}
	}
	if g := w.guests; g != nil {
		b.WriteString(g.byNode(stacks))
	}
	b.WriteString(w.fleet.strays(stacks))
	return fmt.Errorf("simulation: seed %d, step %d, %v: %w%s", w.o.Seed, w.steps, w.clock.now, err, b.String())
}

// stack returns the stack of the call of Hold, in the format that frame() reads.
func (x *heldWait) stack() string {
	var b strings.Builder
	for calls, more := runtime.CallersFrames(x.by[:]), true; more; {
		var f runtime.Frame
		if f, more = calls.Next(); f.PC != 0 {
			fmt.Fprintf(&b, "%s(...)\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
	}
	return b.String()
}

// strays describes the live goroutines that tasks have started. The program may expect such a goroutine to wake a task, but the goroutine
// must not call into the World.
func (l *fleet) strays(stacks map[int64][]byte) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		_, by, _ := bytes.Cut(stacks[id], []byte("\ncreated by "))
		line, _, _ := bytes.Cut(by, []byte{'\n'})
		_, parent, ok := bytes.Cut(line, []byte(" in goroutine "))
		n, _ := strconv.ParseInt(string(parent), 10, 64)
		if ok && l.find(n) != nil && l.find(id) == nil && !bytes.HasPrefix(by, []byte("iter.Pull")) {
			fmt.Fprintf(&b, "\n\na goroutine that a task has started, outside the World:\n%s", frame(frames(stacks[id])))
		}
	}
	return b.String()
}

// byNode returns the stacks of the guests, grouped by node.
func (g *guests) byNode(stacks map[int64][]byte) string {
	of := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		head, _, _ := bytes.Cut(stacks[id], []byte{'\n'})
		if _, node, ok := bytes.Cut(head, []byte(`"node": "`)); ok && bytes.Contains(head, []byte(g.bubble)) && !bytes.Contains(head, []byte("[crashed")) {
			name, _, _ := bytes.Cut(node, []byte{'"'})
			of[string(name)] = append(of[string(name)], fmt.Sprintf("\n\n%s\n%s", head, frame(frames(stacks[id]))))
		}
	}
	var b strings.Builder
	for _, node := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "\n\nguests of %s:%s", node, strings.Join(of[node], ""))
	}
	return b.String()
}

// findOrphanedLock fails the run if a guest waits for a mutex that a guest of a crashed node has locked.
func (g *guests) findOrphanedLock() {
	id := chance.Blocked()
	if id == 0 || g.w.err != nil {
		return
	}
	at := frame(frames(maps.Collect(gid.Stacks())[id]))
	g.w.fail(fmt.Errorf("simulation: seed %d, step %d, %v: %w. It waits for a mutex that a guest of a crashed node has locked. Nodes share the "+
		"variables of packages:\n%s", g.w.o.Seed, g.w.steps, g.w.clock.now, ErrStuck, at))
}

// findRealIO searches the stack traces of all guests for a wait for real I/O, and stores the first such wait in g.outside as an error.
func (g *guests) findRealIO() {
	if at := g.findWait("[IO wait"); at != "" && g.outside == nil {
		g.outside = fmt.Errorf("%w: real I/O at %s. Use the Listen or the Dial of its Host", ErrStuck, at)
	}
}

// findOutsideWait fails the run if a guest waits for a channel or a WaitGroup that belongs to no bubble. With the overlay there is no such
// wait.
func (g *guests) findOutsideWait() {
	if at := g.findWait("[chan receive", "[chan send", "[select", "[sync.WaitGroup.Wait"); at != "" {
		g.w.fail(g.w.account(fmt.Errorf("%w: the clock of package time stands still, because a guest waits at %s for a channel or a WaitGroup that "+
			"was made outside of the run, such as a variable of a package. Use simulation/overlay", ErrStuck, at)))
	}
}

// findWait returns the place where a guest is in a wait of one of the given kinds that is not durable, or "".
func (g *guests) findWait(kinds ...string) string {
	stacks := maps.Collect(gid.Stacks())
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		head, calls, _ := bytes.Cut(stacks[id], []byte{'\n'})
		of := func(kind string) bool { return bytes.Contains(head, []byte(kind)) }
		if !of(g.bubble) || of("(durable)") || !slices.ContainsFunc(kinds, of) || bytes.Contains(calls, []byte("(*guests).sleeper(")) {
			continue
		}
		lines := strings.Split(string(calls), "\n") // each call has two lines
		for len(lines) > 3 && slices.ContainsFunc(standard, func(p string) bool { return strings.HasPrefix(lines[0], p) }) {
			lines = lines[2:]
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[1]), " +0x")
		return at
	}
	return ""
}

// someRuns reports whether a guest waits for nothing although no goroutine was runnable or in a system call: the runtime without the overlay
// counts a goroutine that returns from a call for a moment as neither, and on a busy machine this moment may be long.
func (g *guests) someRuns() bool {
	for _, text := range gid.Stacks() {
		head, _, _ := bytes.Cut(text, []byte{'\n'})
		if of := func(kind string) bool { return bytes.Contains(head, []byte(kind)) }; of(g.bubble) && (of("[run") || of("[syscall")) {
			return true
		}
	}
	return false
}

// standard lists the packages whose functions lie between a program and a wait for real I/O.
var standard = []string{"internal/", "sync.", "net.", "net/", "crypto/", "os.", "os/", "io.", "bufio."}
