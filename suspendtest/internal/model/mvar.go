package model

import (
	"context"
	"errors"
	"strconv"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// MVar is the interface of an object checked with MVars.
type MVar interface {
	Put(ctx context.Context, v int) error
	Take(ctx context.Context) (int, error)
	Read(ctx context.Context) (int, error)
	Swap(ctx context.Context, v int) (int, error)
	Modify(ctx context.Context, f func(int) (int, error)) error
	TryPut(v int) bool
	TryTake() (int, bool)
	TryRead() (int, bool)
	PutOp(v int) suspend.Op[struct{}]
	TakeOp() suspend.Op[int]
	ReadOp() suspend.Op[int]
	SwapOp(v int) suspend.Op[int]
}

// MVars returns the Spec of an MVar.
func MVars(anew func() MVar) Spec {
	return Spec{Name: "mvar", New: func(Choose) *System {
		return &System{
			Title: "m is an empty MVar",
			Parts: []Part{mvarPart(anew())},
			Probe: []Call{{0, mvarTryTake, 0}, {0, mvarTryPut, 999}, {0, mvarTryTake, 0}, {0, mvarTryTake, 0}},
		}
	}}
}

// RealMVar returns an MVar of package mvar.
func RealMVar() MVar { return mvar.New[int]() }

const mvarTryTake, mvarTryPut = 6, 5 // these are indices of Part.Kinds

var errModify = errors.New("not modified")

func mvarPart(m MVar) Part {
	return Part{Name: "m", Model: &mvarModel{}, Kinds: []Kind{
		{Name: "Put", Fresh: true, Seen: "ok",
			Run: func(ctx context.Context, v int) string { return result("ok", m.Put(ctx, v)) },
			Op:  func(v int) suspend.Op[string] { return done(m.PutOp(v)) }},
		{Name: "Take", Seen: "=",
			Run: func(ctx context.Context, _ int) string { return value(m.Take(ctx)) },
			Op:  func(int) suspend.Op[string] { return valued(m.TakeOp()) }},
		{Name: "Read", Seen: "=",
			Run: func(ctx context.Context, _ int) string { return value(m.Read(ctx)) },
			Op:  func(int) suspend.Op[string] { return valued(m.ReadOp()) }},
		{Name: "Swap", Fresh: true, Seen: "=",
			Run: func(ctx context.Context, v int) string { return value(m.Swap(ctx, v)) },
			Op:  func(v int) suspend.Op[string] { return valued(m.SwapOp(v)) }},
		{Name: "Modify", Args: 2, Seen: "ok,not modified",
			Run: func(ctx context.Context, how int) string {
				return result("ok", m.Modify(ctx, func(v int) (int, error) {
					suspend.Yield()
					if how == 2 {
						return -1, errModify
					}
					return v + 1000, nil
				}))
			}},
		{Name: "TryPut", Fresh: true, Try: true, Seen: "ok,no",
			Run: func(_ context.Context, v int) string { return tried("ok", m.TryPut(v)) }},
		{Name: "TryTake", Try: true, Seen: "=,no", Run: func(context.Context, int) string {
			v, ok := m.TryTake()
			return tried(equals(v), ok)
		}},
		{Name: "TryRead", Try: true, Seen: "=,no", Run: func(context.Context, int) string {
			v, ok := m.TryRead()
			return tried(equals(v), ok)
		}},
	}}
}

// If the field named out is set in an mvarModel, the Modify in the field named by has taken the value and has not yet put it back.
type mvarModel struct {
	full, out bool
	value     int
	by        Waiter
}

func (m *mvarModel) Copy() Object { c := *m; return &c }

func (m *mvarModel) Serve(w *World) bool {
	if m.out {
		return false
	}
	var first *Waiter
	for _, o := range w.Waiting() {
		switch o.Kind {
		case "Put", "TryPut":
			if !m.full {
				m.full, m.value = true, o.Arg
				w.End(o, "ok")
				return true
			}
		case "Read", "TryRead":
			if m.full { // reads take effect before other operations
				w.End(o, equals(m.value))
				return true
			}
		default:
			if m.full && first == nil {
				first = &o
			}
		}
	}
	if first == nil {
		return false
	}
	switch first.Kind {
	case "Take", "TryTake":
		m.full = false
		w.End(*first, equals(m.value))
	case "Swap":
		w.End(*first, equals(m.value))
		m.value = first.Arg
	case "Modify":
		m.full, m.out, m.by = false, true, *first
		w.Hold(first.ID)
	}
	return true
}

func (m *mvarModel) Moves() bool { return m.out }

func (m *mvarModel) Move(w *World) {
	m.out, m.full = false, true
	if m.by.Arg == 2 {
		w.End(m.by, errModify.Error())
	} else {
		m.value += 1000
		w.End(m.by, "ok")
	}
	m.by = Waiter{}
}

func equals(v int) string { return "=" + strconv.Itoa(v) }

func value(v int, err error) string { return result(equals(v), err) }

func tried(yes string, ok bool) string {
	if ok {
		return yes
	}
	return "no"
}

// The functions done and valued return an Op that performs op and returns the result as a string.
func done[T any](op suspend.Op[T]) suspend.Op[string] {
	return suspend.Map(op, func(_ T, err error) (string, error) { return "ok", err })
}

func valued(op suspend.Op[int]) suspend.Op[string] {
	return suspend.Map(op, func(v int, err error) (string, error) { return equals(v), err })
}
