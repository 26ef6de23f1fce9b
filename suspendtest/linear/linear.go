// Package linear checks whether the results of overlapping operations are possible in some sequential order: whether the operations are
// linearizable. It uses porcupine, on which only users of this package depend.
package linear

import (
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

// A Model describes an object as used by one task: its first state, of type S, and its steps. Step says what the operation in does to the
// state s, and whether out is a result that it may have then. States are compared by ==.
//
// Lost returns the state after the operation in, whose result is unknown. A model of a service over a network needs Lost: an operation that
// fails, or whose task ends before it returns, may then have had its effect, may have it later, or never. Without Lost such an operation is
// left out.
type Model[S comparable, In, Out any] struct {
	First S
	Step  func(s S, in In, out Out) (after S, possible bool)
	Lost  func(s S, in In) (after S)

	passed sync.Map // histories of runs of an exploration
}

// unknown is the result of an operation that is lost.
type unknown struct{}

// A History has the operations on one object. Its methods may be called by any tasks at the same time.
type History[S comparable, In, Out any] struct {
	model *Model[S, In, Out]
	world World // there is none outside an exploration
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// A World is a run of suspendtest.Explore.
type World interface {
	Called()
	Returned()
	Log(format string, args ...any)
	Check(f func() error)
}

// New returns an empty History, which the caller checks at the end.
func (m *Model[S, In, Out]) New() *History[S, In, Out] { return &History[S, In, Out]{model: m} }

// In returns a History of one run, which is checked at the end of the run. The trace of the run has the results.
func (m *Model[S, In, Out]) In(w World) *History[S, In, Out] {
	h := &History[S, In, Out]{model: m, world: w}
	w.Check(h.Check)
	return h
}

// Do calls f, which performs the operation in of a client, and returns its results. After an error, the operation is one for Lost of the
// model. Without Lost the operation is left out: it must have had no effect then. Operations of one client must not overlap.
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

// Check returns an error if there is no order of the operations in which each result is possible, and an operation that ended before another
// began comes before it. After twenty seconds it gives up, and returns another error. All calls of Do must have returned.
func (h *History[S, In, Out]) Check() error {
	slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
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
		return errors.New("linear: there is no order for" + s.String())
	}
	if h.world != nil {
		h.model.passed.Store(s.String(), nil)
	}
	return nil
}
