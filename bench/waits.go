package main

import (
	"context"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// What one of many waits takes, where the tasks of thread-bytes do nothing but yield. A process of its own measures one kind, which is
// also the way to measure it alone: bench -bytes then 10000000.
var waitBytes = curve{
	id: "wait-bytes", title: "Live bytes of one of n waits",
	about:   "The growth of the heap and the stacks of a fifo, after a collection, when all wait for the same promise, or Var; each time in a new process.",
	x:       axis{label: "waits", log: true},
	figures: []figure{{name: "bytes", label: "bytes per wait", log: true}},
	series: []string{"continuations (Then) that wait for a promise", "continuations that wait for a transaction", "tasks that wait for a promise",
		"tasks in a transaction that has returned Retry"},
	rounds: 1, cold: true,
	points: func(m mode) []float64 { return decades(m.of(1000, 100), m.of(10_000_000, 1000)) },
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		s := &station{}
		for i, kind := range []string{"then", "then-stm", "await", "retry"} {
			s.sides = append(s.sides, bytesOf(kind, n))
			s.fits(i, n, []int{500, 900, 3700, 5700}[i])
		}
		return s, nil
	},
}

// bytesOf measures in a process of its own.
func bytesOf(kind string, n int) measurement {
	return func() ([]float64, error) {
		out, err := itself(bytesArg, kind, strconv.Itoa(n))
		if err != nil {
			return []float64{0}, err
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		return []float64{v}, err
	}
}

var waitKinds = map[string]func(n int) float64{
	"then": func(n int) float64 {
		p, over := promise.New[int](), 0
		return waiting(n, &over, func(on suspend.Executor) error {
			suspend.Then(context.Background(), p.AwaitOp(), on, func(int, error) { over++ })
			return nil
		}, func() { p.Resolve(1, nil) })
	},
	"then-stm": func(n int) float64 {
		gate, over := stm.NewVar(false), 0
		f := opened(gate)
		op := stm.Op(func(tx *stm.Tx) (none struct{}, err error) { return none, f(tx) })
		return waiting(n, &over, func(on suspend.Executor) error {
			suspend.Then(context.Background(), op, on, func(struct{}, error) { over++ })
			return nil
		}, func() { open(gate) })
	},
	"await": func(n int) float64 {
		p, over := promise.New[int](), 0
		return waiting(n, &over, func(suspend.Executor) error {
			return suspend.Here().Go(func() { _, _ = p.Await(context.Background()); over++ })
		}, func() { p.Resolve(1, nil) })
	},
	"retry": func(n int) float64 {
		gate, over := stm.NewVar(false), 0
		f := opened(gate)
		return waiting(n, &over, func(suspend.Executor) error {
			return suspend.Here().Go(func() { _ = stm.Atomically(context.Background(), f); over++ })
		}, func() { open(gate) })
	},
}

func opened(gate *stm.Var[bool]) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error {
		if !gate.Get(tx) {
			return stm.Retry
		}
		return nil
	}
}

func open(gate *stm.Var[bool]) {
	atomically(func(tx *stm.Tx) error { gate.Set(tx, true); return nil })
}

// waiting starts n waits, measures, ends them, and sees that all have ended.
func waiting(n int, over *int, start func(on suspend.Executor) error, end func()) (each float64) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	before := liveBytesAndStacks()
	on := fifo.New(fifo.Options{StallAfter: -1}) // a collection holds it for seconds
	must(0, on.Run(context.Background(), func(context.Context) error {
		for range n {
			must(0, start(on))
		}
		suspend.Yield()
		check(*over == 0)
		each = float64(liveBytesAndStacks()-before) / float64(n)
		end()
		return nil
	}))
	check(*over == n)
	return each
}
