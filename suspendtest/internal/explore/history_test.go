//go:build explore

package explore_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// A history has the results of the operations of a run, and which ended before which began. In a reduced search runs with different
// histories are different.
type history struct {
	w     *explore.World
	model porcupine.Model
	ops   []porcupine.Operation
	now   int64
}

// An op is an operation: its name, its argument, and its result.
type op struct {
	name string
	n    int
}

// linearizable checks the history of this run at its end.
func linearizable(w *explore.World, model porcupine.Model) *history {
	h := &history{w: w, model: model}
	w.Check(h.check)
	return h
}

// knownHistories has the answer for each history that was checked.
var knownHistories = map[string]bool{}

func (h *history) check() error {
	var s strings.Builder
	s.WriteString(fmt.Sprint(h.model.Init()))
	for _, x := range h.ops {
		fmt.Fprintf(&s, " %v=%v %d-%d", x.Input, x.Output, x.Call, x.Return)
	}
	ok, known := knownHistories[s.String()]
	if !known {
		ok = porcupine.CheckOperations(h.model, h.ops)
		knownHistories[s.String()] = ok
	}
	if !ok {
		return fmt.Errorf("not linearizable: %s", s.String())
	}
	return nil
}

// do does an operation. One that has failed has no effect, so it is as if it had not been.
func (h *history) do(client int, name string, n int, f func() (out int, err error)) (int, error) {
	h.w.Called()
	h.now++
	call := h.now
	out, err := f()
	h.w.Returned()
	h.now++
	if err == nil {
		h.w.Log("%s %d returns %d", name, n, out)
		h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op{name, n}, Call: call, Output: out, Return: h.now})
	}
	return out, err
}

// none is for what returns nothing but an error.
func (h *history) none(client int, name string, n int, f func(ctx context.Context) error, ctx context.Context) error {
	_, err := h.do(client, name, n, func() (int, error) { return 0, f(ctx) })
	return err
}

// model makes a model of the state s.
func model[S comparable](s S, step func(s S, o op, out int) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return s },
		Step: func(s, in, out any) (bool, any) { return step(s.(S), in.(op), out.(int)) },
	}
}

var lockModel = model(false, func(held bool, o op, out int) (bool, bool) {
	switch o.name {
	case "lock":
		return !held, true
	case "try":
		return out == 0 || !held, held || out == 1 // it may fail, also where nobody holds it, if somebody waits
	default:
		return held, false
	}
})

// An MVar: 0 is empty.
var placeModel = model(0, func(v int, o op, out int) (bool, int) {
	switch o.name {
	case "put":
		return v == 0, o.n
	case "take":
		return v != 0 && out == v, 0
	case "read":
		return v != 0 && out == v, v
	case "swap":
		return v != 0 && out == v, o.n
	default: // modify
		return v != 0 && out == v, v + o.n
	}
})

// The values in a channel are digits.
func chanModel(capacity int) porcupine.Model {
	return model("", func(s string, o op, out int) (bool, string) {
		if o.name == "send" {
			return len(s) < capacity, s + fmt.Sprint(o.n)
		}
		return s != "" && s[:1] == fmt.Sprint(out), strings.TrimPrefix(s, fmt.Sprint(out))
	})
}

func permitModel(n int) porcupine.Model {
	return model(n, func(free int, o op, out int) (bool, int) {
		switch o.name {
		case "acquire":
			return free >= o.n, free - o.n
		default:
			return free+o.n <= n, free + o.n
		}
	})
}

// A promise: -1 is empty.
var promiseModel = model(-1, func(v int, o op, out int) (bool, int) {
	switch o.name {
	case "fill":
		if out == 0 { // filled already
			return v >= 0, v
		}
		return v < 0, o.n
	case "try":
		return out == v, v
	default:
		return v >= 0 && out == v, v
	}
})
