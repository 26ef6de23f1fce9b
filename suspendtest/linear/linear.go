// Package linear checks whether concurrent operations are linearizable, that is, whether their results are possible in a
// sequential order. Package linear uses the checker porcupine, which is linked only into programs that import this package.
package linear

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Model describes the sequential behaviour of an object by its first state, of type S, and its steps. Step(s, in, out)
// applies an operation with this input to the state s. It returns the new state and reports whether out is a possible result of
// the operation. States are compared with ==.
//
// Lost(s, in) returns the state after an operation whose result is unknown. A model of a service on a network needs Lost,
// because an operation that fails, or whose task ends before the operation returns, may already have had its effect, may have
// it later, or may never have it. If Lost is nil, such operations are ignored.
type Model[S comparable, In, Out any] struct {
	First S
	Step  func(s S, in In, out Out) (after S, possible bool)
	Lost  func(s S, in In) (after S)

	passed sync.Map // histories that have passed Check in an exploration
}

// unknown is the result of a lost operation.
type unknown struct{}

// A History records the operations on one object. Concurrent tasks may call Do.
type History[S comparable, In, Out any] struct {
	model *Model[S, In, Out]
	world World // a History outside an exploration has no World
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// A World is a run of suspendtest.Explore, that is, a *suspendtest.World.
type World interface {
	Called()
	Returned()
	Log(format string, args ...any)
	Check(f func() error)
}

// New returns an empty History. The caller must call Check at the end.
func (m *Model[S, In, Out]) New() *History[S, In, Out] { return &History[S, In, Out]{model: m} }

// In returns an empty History for one run. The History is checked at the end of the run, and the results are logged in the
// run's trace.
func (m *Model[S, In, Out]) In(w World) *History[S, In, Out] {
	h := &History[S, In, Out]{model: m, world: w}
	w.Check(h.Check)
	return h
}

// Do calls f, which performs an operation for a client, and returns the results of f. The argument in is the input of the
// operation. If f returns an error, the operation is lost, see Model. If the model has no Lost function, the operation is
// ignored, so it must have had no effect. Operations of one client must not overlap.
func (h *History[S, In, Out]) Do(client int, in In, f func() (Out, error)) (Out, error) {
	if h.world != nil {
		h.world.Called()
	}
	call, lost := h.clock.Add(1), h.model.Lost != nil
	defer func() {
		if lost {
			h.add(porcupine.Operation{ClientId: client, Input: in, Call: call, Output: unknown{}, Return: math.MaxInt64})
		}
	}()
	out, err := f()
	if h.world != nil {
		h.world.Returned()
		h.world.Log("%v returns %v, %v", in, out, err)
	}
	end := h.clock.Add(1)
	if err == nil {
		lost = false
		h.add(porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	}
	return out, err
}

func (h *History[S, In, Out]) add(o porcupine.Operation) {
	h.mu.Lock()
	h.ops = append(h.ops, o)
	h.mu.Unlock()
}

// Check returns an error if the operations are not linearizable. Operations are linearizable if there is an order in which each
// result is possible, and in which every operation precedes all operations that began after its end. After twenty seconds,
// Check gives up and returns a different error. Many lost operations make the search long, so such histories should be short.
// Check must not be called before all calls of Do have returned.
func (h *History[S, In, Out]) Check() error {
	slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var s strings.Builder
	for _, o := range h.ops {
		if _, lost := o.Output.(unknown); lost {
			fmt.Fprintf(&s, "\n\t%3d        : %v has not returned, or failed", o.Call, o.Input)
			continue
		}
		fmt.Fprintf(&s, "\n\t%3d to %3d: %v returned %v", o.Call, o.Return, o.Input, o.Output)
	}
	if _, ok := h.model.passed.Load(s.String()); ok {
		return nil
	}
	model := porcupine.Model{
		Init: func() any { return h.model.First },
		Step: func(s, in, out any) (bool, any) {
			if _, lost := out.(unknown); lost {
				return true, h.model.Lost(s.(S), in.(In))
			}
			after, possible := h.model.Step(s.(S), in.(In), out.(Out))
			return possible, after
		},
	}
	switch porcupine.CheckOperationsTimeout(model, h.ops, 20*time.Second) {
	case porcupine.Unknown:
		return fmt.Errorf("linear: undecided: %d operations", len(h.ops))
	case porcupine.Illegal:
		return errors.New("linear: no order explains" + s.String())
	}
	if h.world != nil {
		h.model.passed.Store(s.String(), nil)
	}
	return nil
}
