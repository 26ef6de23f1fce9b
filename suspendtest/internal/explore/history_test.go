//go:build explore

package explore_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/braidgo/braid/suspendtest/internal/explore"
	"github.com/braidgo/braid/suspendtest/linear"
)

// A history is the Do of a History of package linear. In a reduced search, runs with different histories count as different.
type history func(client int, in op, f func() (int, error)) (int, error)

// An op is an operation with its argument and its result.
type op struct {
	name string
	n    int
}

// linearizable checks the history of this run at its end.
func linearizable[S comparable](w *explore.World, m *linear.Model[S, op, int]) history {
	return m.In(w).Do
}

// do performs an operation.
func (h history) do(client int, name string, n int, f func() (out int, err error)) (int, error) {
	return h(client, op{name, n}, f)
}

// none is do for an operation that returns only an error.
func (h history) none(client int, name string, n int, f func(ctx context.Context) error, ctx context.Context) error {
	_, err := h.do(client, name, n, func() (int, error) { return 0, f(ctx) })
	return err
}

// model returns a model with the state s.
func model[S comparable](s S, step func(s S, o op, out int) (bool, S)) *linear.Model[S, op, int] {
	return &linear.Model[S, op, int]{First: s, Step: func(s S, o op, out int) (S, bool) {
		ok, after := step(s, o, out)
		return after, ok
	}}
}

var lockModel = model(false, func(held bool, o op, out int) (bool, bool) {
	switch o.name {
	case "lock":
		return !held, true
	case "try":
		return out == 0 || !held, held || out == 1 // a TryLock may fail although the lock is free, if it has waiters
	default:
		return held, false
	}
})

// placeModel is the model of an MVar of digits; 0 stands for empty.
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
	default: // Modify
		return v != 0 && out == v, v + o.n
	}
})

// chanModel is the model of a channel of digits.
func chanModel(capacity int) *linear.Model[string, op, int] {
	return model("", func(s string, o op, out int) (bool, string) {
		if o.name == "send" {
			return len(s) < capacity, s + fmt.Sprint(o.n)
		}
		return s != "" && s[:1] == fmt.Sprint(out), strings.TrimPrefix(s, fmt.Sprint(out))
	})
}

func permitModel(n int) *linear.Model[int, op, int] {
	return model(n, func(free int, o op, out int) (bool, int) {
		switch o.name {
		case "acquire":
			return free >= o.n, free - o.n
		default:
			return free+o.n <= n, free + o.n
		}
	})
}

// promiseModel is the model of a promise; -1 stands for empty.
var promiseModel = model(-1, func(v int, o op, out int) (bool, int) {
	switch o.name {
	case "fill":
		if out == 0 { // it was filled before
			return v >= 0, v
		}
		return v < 0, o.n
	case "try":
		return out == v, v
	default:
		return v >= 0 && out == v, v
	}
})
