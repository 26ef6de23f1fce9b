package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

var errFailed = errors.New("failed")

// Promise is the interface of an object checked with Promises.
type Promise interface {
	Await(ctx context.Context) (int, error)
	AwaitOp() suspend.Op[int]
	Try() (int, bool, error)
	Fill(v int) bool
	Fail(err error) bool
}

// Promises returns the Spec of a Promise.
func Promises(anew func() Promise) Spec {
	return Spec{Name: "promise", New: func(Choose) *System {
		return &System{Title: "p is a Promise", Parts: []Part{promisePart(anew())}, Probe: []Call{{0, 1, 0}, {0, 2, 999}, {0, 1, 0}}}
	}}
}

// RealPromise returns a Promise of package promise.
func RealPromise() Promise { return promise.New[int]() }

func promisePart(p Promise) Part {
	return Part{Name: "p", Model: &promiseModel{}, Kinds: []Kind{
		{Name: "Await", Seen: "=,failed",
			Run: func(ctx context.Context, _ int) string { return value(p.Await(ctx)) },
			Op:  func(int) suspend.Op[string] { return valued(p.AwaitOp()) }},
		{Name: "Try", Try: true, Seen: "=,failed,no", Run: func(context.Context, int) string {
			v, ok, err := p.Try()
			return result(tried(equals(v), ok), err)
		}},
		{Name: "Fill", Fresh: true, Try: true, Seen: "ok,filled already",
			Run: func(_ context.Context, v int) string { return filled(p.Fill(v)) }},
		{Name: "Fail", Try: true, Seen: "ok,filled already",
			Run: func(context.Context, int) string { return filled(p.Fail(errFailed)) }},
	}}
}

// filled returns the result of a Fill or a Fail.
func filled(first bool) string {
	if first {
		return "ok"
	}
	return "filled already"
}

type promiseModel struct{ is string }

func (p *promiseModel) Copy() Object { c := *p; return &c }

func (p *promiseModel) Serve(w *World) bool {
	for _, o := range w.Waiting() {
		switch {
		case (o.Kind == "Fill" || o.Kind == "Fail") && p.is != "":
			w.End(o, filled(false))
		case o.Kind == "Fill":
			p.is = equals(o.Arg)
			w.End(o, "ok")
		case o.Kind == "Fail":
			p.is = errFailed.Error()
			w.End(o, "ok")
		case p.is != "":
			w.End(o, p.is)
		default:
			continue
		}
		return true
	}
	return false
}

// Cond is the interface of an object checked with Conds.
type Cond interface {
	Wait(ctx context.Context) error
	Signal()
	Broadcast()
}

// Conds returns the Spec of a Cond. The functions lock and unlock operate on the Cond's lock.
func Conds(anew func() (c Cond, lock, unlock func())) Spec {
	return Spec{Name: "cond", New: func(Choose) *System {
		c, lock, unlock := anew()
		return &System{Title: "c is a Cond", Parts: []Part{{Name: "c", Model: &condModel{}, Kinds: []Kind{
			{Name: "Wait", Seen: "ok", Run: func(ctx context.Context, _ int) string {
				lock()
				defer unlock()
				return result("ok", c.Wait(ctx))
			}},
			{Name: "Signal", Try: true, Run: func(context.Context, int) string { c.Signal(); return "ok" }},
			{Name: "Broadcast", Try: true, Run: func(context.Context, int) string { c.Broadcast(); return "ok" }},
		}}}}
	}}
}

// RealCond returns a Cond of package cond, and functions that lock and unlock its Mutex.
func RealCond() (c Cond, lock, unlock func()) {
	l := new(mutex.Mutex)
	return cond.New(l), l.Lock, l.Unlock
}

type condModel struct{}

func (c *condModel) Copy() Object { return c }

func (c *condModel) Serve(w *World) bool {
	all := w.Waiting()
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1] // a Signal or Broadcast never waits, so only the last operation can be one
	if last.Kind == "Wait" {
		return false
	}
	w.End(last, "ok")
	for _, o := range all[:len(all)-1] {
		if w.End(o, "ok"); last.Kind == "Signal" {
			break
		}
	}
	return true
}

// Latch is the interface of an object checked with Latches.
type Latch interface {
	Wait(ctx context.Context) error
	WaitOp() suspend.Op[struct{}]
	TryWait() bool
	CountDown()
}

// Latches returns the Spec of a Latch.
func Latches(anew func(n int) Latch) Spec {
	return Spec{Name: "latch", New: func(choose Choose) *System {
		n := choose(4)
		l := anew(n)
		return &System{Title: fmt.Sprintf("l is a Latch of %d", n), Parts: []Part{{Name: "l", Model: &latchModel{n}, Kinds: []Kind{
			{Name: "Wait", Seen: "ok",
				Run: func(ctx context.Context, _ int) string { return result("ok", l.Wait(ctx)) },
				Op:  func(int) suspend.Op[string] { return done(l.WaitOp()) }},
			{Name: "CountDown", Try: true, Seen: "ok,panic: latch: CountDown below zero",
				Run: func(context.Context, int) string { l.CountDown(); return "ok" }},
			{Name: "TryWait", Try: true, Seen: "ok,no", Run: func(context.Context, int) string { return tried("ok", l.TryWait()) }},
		}}}, Probe: []Call{{0, 2, 0}, {0, 1, 0}, {0, 2, 0}, {0, 1, 0}}}
	}}
}

// RealLatch returns a Latch of package latch.
func RealLatch(n int) Latch { return latch.New(n) }

type latchModel struct{ n int }

func (l *latchModel) Copy() Object { c := *l; return &c }

func (l *latchModel) Serve(w *World) bool {
	for _, o := range w.Waiting() {
		switch {
		case o.Kind == "CountDown" && l.n == 0:
			w.End(o, "panic: latch: CountDown below zero")
		case o.Kind == "CountDown":
			l.n--
			w.End(o, "ok")
		case l.n == 0:
			w.End(o, "ok")
		default:
			continue
		}
		return true
	}
	return false
}

// Barrier is the interface of an object checked with Barriers.
type Barrier interface {
	Wait(ctx context.Context) (int, error)
}

// Barriers returns the Spec of a Barrier.
func Barriers(anew func(n int) Barrier) Spec {
	return Spec{Name: "barrier", New: func(choose Choose) *System {
		n := 1 + choose(4)
		b := anew(n)
		return &System{Title: fmt.Sprintf("b is a Barrier for %d", n), Parts: []Part{{Name: "b", Model: &barrierModel{n}, Kinds: []Kind{
			{Name: "Wait", Seen: "=," + latch.ErrBroken.Error(), Run: func(ctx context.Context, _ int) string {
				i, err := b.Wait(ctx)
				if err != nil && i != -1 {
					return fmt.Sprint("index ", i, " with ", err)
				}
				return value(i, err)
			}},
		}}}}
	}}
}

// RealBarrier returns a Barrier of package latch.
func RealBarrier(n int) Barrier { return latch.NewBarrier(n) }

type barrierModel struct{ n int }

func (b *barrierModel) Copy() Object { return b }

func (b *barrierModel) Serve(w *World) bool {
	all := w.Waiting()
	if len(all) < b.n {
		return false
	}
	for i, o := range all {
		w.End(o, equals(b.n-1-i))
	}
	return true
}

// Quit breaks the round for all waiters. A waiter that is also about to be cancelled may return either error.
func (b *barrierModel) Quit(w *World, _ int) {
	for _, o := range w.Waiting() {
		if w.Leaving(o.ID) && w.Choose(2) == 1 {
			w.End(o, w.Reason(o.ID))
		} else {
			w.End(o, latch.ErrBroken.Error())
		}
	}
}

// Lazy is the interface of an object checked with Lazies.
type Lazy interface {
	Force(ctx context.Context) (int, error)
	Value() (int, bool, error)
	ValueOp() suspend.Op[int]
}

// Lazies returns the Spec of a Lazy whose function waits until the program sets the function's result.
func Lazies(anew func(f func(context.Context) (int, error), mode lazy.Mode) Lazy) Spec {
	return Spec{Name: "lazy", New: func(choose Choose) *System {
		mode := lazy.Mode(choose(4))
		const fails = -1 // the function is to return an error
		results := chanx.New[int](0)
		l := anew(func(ctx context.Context) (int, error) {
			v, err := results.Recv(ctx)
			if v == fails {
				return 0, errFailed
			}
			return v, err
		}, mode)
		finish := func(v int) string {
			ok, _ := results.TrySend(v)
			return tried("ok", ok)
		}
		title := fmt.Sprintf("l is a Lazy, %s, whose function waits until it is told what to return", [...]string{"Restart", "Record", "Protect", "Retry"}[mode])
		return &System{Title: title, Slow: true, Close: func() { _ = results.Close() }, Parts: []Part{{Name: "l", Model: &lazyModel{mode: mode, runner: -1}, Kinds: []Kind{
			{Name: "Force", Seen: "=,failed", Run: func(ctx context.Context, _ int) string { return value(l.Force(ctx)) }},
			{Name: "returns", Fresh: true, Try: true, Seen: "ok,no", Run: func(_ context.Context, v int) string { return finish(v) }},
			{Name: "fails", Try: true, Seen: "ok,no", Run: func(context.Context, int) string { return finish(fails) }},
			{Name: "Value", Try: true, Seen: "=,failed,no", Run: func(context.Context, int) string {
				v, ok, err := l.Value()
				return result(tried(equals(v), ok), err)
			}},
			{Name: "ValueOp", Seen: "=,failed", Op: func(int) suspend.Op[string] { return valued(l.ValueOp()) }},
		}}}, Probe: []Call{{0, 3, 0}, {0, 1, 999}, {0, 3, 0}}}
	}}
}

// RealLazy returns a Lazy of package lazy.
func RealLazy(f func(context.Context) (int, error), mode lazy.Mode) Lazy { return lazy.New(f, mode) }

type lazyModel struct {
	mode   lazy.Mode
	is     string // the result, or empty while the Lazy has no result
	runner int    // the id of the Force that runs the function, or -1
	phase  phase
	got    string // the result that the function is about to return
}

type phase int

const (
	toBegin phase = iota
	toWait
	waits
	toReturn
)

func (l *lazyModel) Copy() Object { c := *l; return &c }

func (l *lazyModel) Serve(w *World) bool {
	for _, o := range w.Waiting() {
		switch {
		case o.Kind == "returns" || o.Kind == "fails":
			if l.runner < 0 || l.phase != waits {
				continue
			}
			if l.phase, l.got = toReturn, errFailed.Error(); o.Kind == "returns" {
				l.got = equals(o.Arg)
			}
			w.End(o, "ok")
		case l.is != "":
			w.End(o, l.is)
		case o.Kind == "Force" && l.runner < 0:
			l.run(w, o.ID)
		default:
			continue
		}
		return true
	}
	return false
}

func (l *lazyModel) run(w *World, id int) {
	l.runner, l.phase = id, toBegin
	w.Hold(id)
}

func (l *lazyModel) Moves() bool { return l.runner >= 0 && l.phase != waits }

func (l *lazyModel) Move(w *World) {
	cancelled := w.Cancelled(l.runner)
	switch l.phase {
	case toBegin:
		if cancelled {
			l.pass(w, w.Reason(l.runner))
			return
		}
		l.phase = toWait
	case toWait:
		l.phase = waits
		if cancelled && l.mode != lazy.Protect {
			l.phase, l.got = toReturn, w.Reason(l.runner)
		}
	case toReturn:
		if (l.mode == lazy.Restart || l.mode == lazy.Retry) && l.got[0] != '=' {
			if !cancelled && l.mode == lazy.Retry {
				for _, o := range w.Waiting() { // those who wait share the error
					if o.Kind == "Force" {
						w.End(o, l.got)
					}
				}
			}
			if cancelled || l.mode == lazy.Retry {
				l.pass(w, l.got)
				return
			}
		}
		l.is = l.got
		w.Finish(l.runner, l.got)
		l.runner, l.got = -1, ""
	}
}

// pass ends the Force that runs the function, so that another Force can run the function.
func (l *lazyModel) pass(w *World, result string) {
	w.Finish(l.runner, result)
	l.runner, l.got = -1, ""
}

// Quit cancels the function's wait, unless the mode is Protect.
func (l *lazyModel) Quit(w *World, id int) {
	if id == l.runner && l.phase == waits && l.mode != lazy.Protect {
		l.phase, l.got = toReturn, w.Reason(id)
	}
}
