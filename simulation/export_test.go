package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// The errors that only tests match.
var ErrNative, ErrExited = errNative, errExited

// OpenRun is Run for the conformance kit: other goroutines may submit functions and wake tasks, and the run waits for all tasks.
// It calls ready first.
func OpenRun(o Options, ready func(*World)) func(ctx context.Context, main func(ctx context.Context) error) error {
	return func(_ context.Context, main func(ctx context.Context) error) error {
		o.open = true
		return Run(func(ctx context.Context, w *World) error {
			ready(w)
			return main(ctx)
		}, o).Err
	}
}

// CheckInBubbles is Check, with each run in a bubble of its own, as in Test with Bubble.
func CheckInBubbles(t *testing.T, o Options, main func(ctx context.Context, w *World) error) error {
	c := checker{run: func(o Options) (r Report) {
		synctest.Test(t, func(*testing.T) { r = Run(main, o) })
		return r
	}}
	o.Bubble = true
	return c.check(o)
}

// Shorten does what Test does with BRAID_SHORTEN. of is the part that BRAID_SEED would have behind the seed.
func Shorten(o Options, of string, tries int, main func(ctx context.Context, w *World) error) (name, story string, err error) {
	p, err := seeds.Parse(fmt.Sprint(o.Seed) + of)
	if err != nil {
		return "", "", err
	}
	r := &runner{o: o, checker: checker{run: func(o Options) Report { return runApart(o, main) }}}
	p = seeds.Shortened(r, p, tries)
	x := r.Twice(p, seeds.How{Tell: true})
	return strings.TrimPrefix(p.String(), fmt.Sprint(o.Seed)), x.Story(), x.Err
}

// RunGuests is Run for a World with guests, as in Test.
func RunGuests(t *testing.T, o Options, main func(ctx context.Context, w *World) error) Report {
	random, _ := openChance()
	return inGuests(t, o, random, main)
}

// HostHere returns the node and the boot of the guest that the calling goroutine belongs to.
func HostHere() (name string, boot int, guest bool) {
	if h := hostHere(); h != nil {
		name, boot = h.n.name, h.boot
	}
	return name, boot, chance.Node() != 0
}

// Nodes reports whether the runtime records the node of each goroutine.
var Nodes = chance.Nodes

// Calm is the first step of Test.
var Calm = calm

// CollectOver is the heap size above which garbage is collected.
var CollectOver = &collectOver

// CheckRuns is Check for another function that runs a World.
func CheckRuns(o Options, run func(Options) Report) error {
	c := checker{run: run}
	return c.check(o)
}

// BusyAfter is the real time after which a guest counts as busy.
var BusyAfter = &busyAfter

// SetOutputOpen sets how long the output of a worker that has ended may stay open.
func SetOutputOpen(d time.Duration) { seeds.OutputOpen = d }

// CrashFunctions returns the number of functions that a crash of n would call.
func (n *Node) CrashFunctions() (all int) {
	n.world.do(func() {
		for f := n.crashes.First(); f != nil; f = f.Next() {
			all++
		}
	})
	return all
}

// These are functions of apart.go.
var (
	Versions  = versions
	RemoveOld = removeOld
)
