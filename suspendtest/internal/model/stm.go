package model

import (
	"context"
	"errors"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// Transactions is the Spec of transactions on two Vars.
var Transactions = Spec{Name: "stm", New: func(Choose) *System {
	return &System{
		Title: "v is two Vars that hold 0",
		Parts: []Part{stmPart(new([2]stm.Var[int]))},
		Probe: []Call{{0, stmTryTake, 1}, {0, stmTryTake, 2}},
	}
}}

const stmTryTake = 4 // this is an index of Part.Kinds

var errGivenUp = errors.New("given up")

// stmPart returns the Part for two Vars. The argument of an operation is 1 or 2, and selects the Var.
func stmPart(v *[2]stm.Var[int]) Part {
	add := func(tx *stm.Tx, i, n int) { v[i].Set(tx, v[i].Get(tx)+n) }
	take := func(tx *stm.Tx, i int) (int, error) {
		n := v[i].Get(tx)
		if n == 0 {
			return 0, stm.Retry
		}
		add(tx, i, -1)
		return n, nil
	}
	takes := func(which int) func(tx *stm.Tx) (int, error) {
		return func(tx *stm.Tx) (int, error) { return take(tx, which-1) }
	}
	moves := func(from int) func(tx *stm.Tx) (int, error) {
		return func(tx *stm.Tx) (int, error) {
			n, err := take(tx, from-1)
			add(tx, 2-from, 1)
			return n, err
		}
	}
	either := func(tx *stm.Tx) (which int, err error) {
		err = stm.OrElse(tx,
			func(tx *stm.Tx) (err error) {
				which = 1
				add(tx, 1, 100)
				_, err = take(tx, 0)
				add(tx, 1, -100)
				return err
			},
			func(tx *stm.Tx) (err error) { which = 2; _, err = take(tx, 1); return err })
		return which, err
	}
	return Part{Name: "v", Model: &stmModel{}, Kinds: []Kind{
		{Name: "Add", Args: 2, Seen: "ok", Run: func(ctx context.Context, which int) string {
			return result("ok", stm.Atomically(ctx, func(tx *stm.Tx) error { add(tx, which-1, 1); return nil }))
		}},
		{Name: "Take", Args: 2, Seen: "=",
			Run: func(ctx context.Context, which int) string { return value(stm.Do(ctx, takes(which))) },
			Op:  func(which int) suspend.Op[string] { return valued(stm.Op(takes(which))) }},
		{Name: "Move", Args: 2, Seen: "=",
			Run: func(ctx context.Context, which int) string { return value(stm.Do(ctx, moves(which))) },
			Op:  func(which int) suspend.Op[string] { return valued(stm.Op(moves(which))) }},
		{Name: "Either", Seen: "=",
			Run: func(ctx context.Context, _ int) string { return value(stm.Do(ctx, either)) },
			Op:  func(int) suspend.Op[string] { return valued(stm.Op(either)) }},
		{Name: "TryTake", Args: 2, Try: true, Seen: "=,no", Run: func(_ context.Context, which int) string {
			n := 0
			ok, _ := stm.Try(func(tx *stm.Tx) (err error) { n, err = take(tx, which-1); return err })
			return tried(equals(n), ok)
		}},
		{Name: "Fail", Args: 2, Seen: "given up", Run: func(ctx context.Context, which int) string {
			return result("ok", stm.Atomically(ctx, func(tx *stm.Tx) error { add(tx, which-1, 1); return errGivenUp }))
		}},
	}}
}

// An stmModel holds the values of two Vars. A commit can make waiting transactions possible. They run one after another at any later
// moment, but a new transaction may overtake them.
type stmModel struct {
	values [2]int
	ready  bool // a waiting transaction is possible
}

func (m *stmModel) Copy() Object { c := *m; return &c }

// perform performs the operation o if o is possible, and reports whether it did.
func (m *stmModel) perform(w *World, o Waiter) bool {
	at := o.Arg - 1
	if o.Kind == "Either" {
		if at = 0; m.values[0] == 0 {
			at = 1
		}
	}
	n := m.values[at]
	switch o.Kind {
	case "Add":
		m.values[at]++
		w.End(o, "ok")
		return true
	case "Fail":
		w.End(o, errGivenUp.Error())
		return true
	}
	if n == 0 {
		return false
	}
	m.values[at]--
	switch o.Kind {
	case "Move":
		m.values[1-at]++
	case "Either":
		n = at + 1
	}
	w.End(o, equals(n))
	return true
}

// possible reports whether the method perform would perform o.
func (m *stmModel) possible(o Waiter) bool {
	switch o.Kind {
	case "Add", "Fail":
		return true
	case "Either":
		return m.values[0]+m.values[1] > 0
	}
	return m.values[o.Arg-1] > 0
}

func (m *stmModel) Serve(w *World) bool {
	m.ready = false
	for _, o := range w.Waiting() {
		if w.Arriving(o.ID) && m.perform(w, o) {
			return true
		}
		m.ready = m.ready || m.possible(o)
	}
	return false
}

func (m *stmModel) Moves() bool { return m.ready }

func (m *stmModel) Move(w *World) {
	var can []Waiter
	for _, o := range w.Waiting() {
		if m.possible(o) {
			can = append(can, o)
		}
	}
	m.perform(w, can[w.Choose(len(can))])
}
