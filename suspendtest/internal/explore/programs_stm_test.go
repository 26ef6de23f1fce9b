//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(append(programs, stmPrograms...), stmOpPrograms...) }

// These programs use transactions. Only Check, when no task runs, accesses Vars outside their Get and Set.
var stmPrograms = []program{
	{"stm, increments", "2 × 1", func(w *explore.World) {
		var v stm.Var[int]
		added := 0
		for _, name := range []string{"inc", "inc2"} {
			w.Go(name, func(ctx context.Context) {
				if stm.Atomically(ctx, add(&v, 1)) == nil {
					added++
				}
			})
		}
		w.Check(func() error { return same(added, v.Load()) })
	}},
	{"stm, opacity", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		w.Go("write", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error { x.Set(tx, 1); y.Set(tx, 1); return nil })
		})
		w.Go("read", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				if a, b := x.Get(tx), y.Get(tx); a != b { // must hold even in a run that is dropped
					panic(fmt.Sprint(a, " and ", b))
				}
				return nil
			})
		})
	}},
	{"stm, opacity, two commits", "2 × 2", func(w *explore.World) {
		var x, y stm.Var[int]
		w.Go("write", func(context.Context) {
			for i := range 2 {
				_ = stm.Atomically(bg, func(tx *stm.Tx) error { x.Set(tx, i+1); y.Set(tx, i+1); return nil })
			}
		})
		w.Go("read", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				if a, b := x.Get(tx), y.Get(tx); a != b {
					panic(fmt.Sprint(a, " and ", b))
				}
				return nil
			})
		})
	}},
	{"stm, a swallowed conflict", "2 × 1", func(w *explore.World) {
		var x, y, z stm.Var[int]
		w.Go("write", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error { x.Set(tx, 1); y.Set(tx, 1); return nil })
		})
		w.Go("read", func(ctx context.Context) {
			swallowed := false
			if stm.Atomically(ctx, func(tx *stm.Tx) (err error) {
				swallowed = true
				defer func() { _ = recover() }()
				z.Set(tx, x.Get(tx)-y.Get(tx))
				swallowed = false
				return nil
			}) == nil && swallowed {
				panic("a run that did not end has committed")
			}
		})
		w.Check(func() error { return same(0, z.Load()) })
	}},
	{"stm, extension", "3 × 1", func(w *explore.World) {
		var x, y, z stm.Var[int]
		for i, v := range []*stm.Var[int]{&y, &z} {
			w.Go(fmt.Sprint("write", i), func(ctx context.Context) {
				_ = stm.Atomically(ctx, func(tx *stm.Tx) error { x.Set(tx, x.Get(tx)+1); v.Set(tx, 1); return nil })
			})
		}
		w.Go("read", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				if a, b, c := y.Get(tx), z.Get(tx), x.Get(tx); a+b != c {
					panic(fmt.Sprint(a, " and ", b, " are not ", c))
				}
				return nil
			})
		})
	}},
	{"stm, Load", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		w.Go("write", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error { x.Set(tx, 1); y.Set(tx, 1); return nil })
		})
		w.Go("load", func(context.Context) {
			if a, b := x.Load(), y.Load(); a > b {
				panic("a part of a commit is visible")
			}
		})
	}},
	{"stm, write skew", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		for i, v := range []*stm.Var[int]{&x, &y} {
			w.Go(fmt.Sprint("take", i), func(ctx context.Context) {
				_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
					if x.Get(tx)+y.Get(tx) == 0 {
						v.Set(tx, 1)
					}
					return nil
				})
			})
		}
		w.Check(func() error { return atMost(1, x.Load()+y.Load()) })
	}},
	{"stm, retry", "2 × 1", stmRetry(1, 1)},
	{"stm, retry, two consumers", "3 × 1", stmRetry(2, 2)},
	{"stm, retry, woken for one of two", "3 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		taken := 0
		w.Go("take", func(ctx context.Context) {
			if stm.Atomically(ctx, func(tx *stm.Tx) error {
				if x.Get(tx)+y.Get(tx) < 2 {
					return stm.Retry
				}
				return errors.Join(add(&x, -1)(tx), add(&y, -1)(tx))
			}) == nil {
				taken++
			}
		})
		for i, v := range []*stm.Var[int]{&x, &y} {
			w.Go(fmt.Sprint("put", i), func(context.Context) { _ = stm.Atomically(bg, add(v, 1)) })
		}
		w.OnIdle(lost)
		w.Check(func() error { return same(2, x.Load()+y.Load()+2*taken) })
	}},
	{"stm, a wide wait", "3 × 1", stmWide(stm.Atomically, 0, 2)},
	{"stm, a wide case", "3 × 1", stmWide(stmCase, 0, 2)},
	{"stm, a wide wait, the first changes", "2 × 1", stmWide(stm.Atomically, 0)},
	{"stm, a wide case, the first changes", "2 × 1", stmWide(stmCase, 0)},
	{"stm, OrElse", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		taken := 0
		w.Go("take", func(ctx context.Context) {
			if stm.Atomically(ctx, func(tx *stm.Tx) error { return stm.OrElse(tx, take(&x), take(&y)) }) == nil {
				taken++
			}
		})
		w.Go("put", func(context.Context) { _ = stm.Atomically(bg, add(&y, 1)) })
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(same(1, y.Load()+taken), same(0, x.Load())) })
	}},
	{"stm, OrElse, rolled back", "3 × 1", func(w *explore.World) {
		var x, y, z stm.Var[int]
		taken := 0
		w.Go("take", func(ctx context.Context) {
			if stm.Atomically(ctx, func(tx *stm.Tx) error {
				return stm.OrElse(tx, func(tx *stm.Tx) error {
					x.Set(tx, x.Get(tx)-1)
					z.Set(tx, 1)
					return take(&y)(tx) // Retry, after two writes
				}, take(&x))
			}) == nil {
				taken++
			}
		})
		w.Go("put", func(context.Context) { _ = stm.Atomically(bg, add(&x, 1)) })
		w.Go("look", func(context.Context) {
			if x.Load() < 0 || z.Load() != 0 {
				panic("the branch was not taken")
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(same(1, x.Load()+taken), same(0, z.Load())) })
	}},
	{"stm, AfterCommit", "2 × 1", func(w *explore.World) {
		var v stm.Var[int]
		committed, called := 0, 0
		for _, name := range []string{"inc", "inc2"} {
			w.Go(name, func(ctx context.Context) {
				if stm.Atomically(ctx, func(tx *stm.Tx) error {
					n := v.Get(tx)
					v.Set(tx, n+1)
					_ = stm.Nested(tx, func(tx *stm.Tx) error {
						tx.AfterCommit(func() { panic("a function of AfterCommit was called although its Nested was undone") })
						return errOops
					})
					tx.AfterCommit(func() {
						if called++; v.Load() <= n {
							panic("before the commit")
						}
					})
					return nil
				}) == nil {
					committed++
				}
			})
		}
		w.Check(func() error { return same(committed, called) })
	}},
	{"stm, the elder", "3 × 1", func(w *explore.World) {
		stm.Reset()
		var v, other stm.Var[int]
		var old mvar.MVar[struct{}]
		runs, ended := 0, false
		w.Go("long", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				if runs++; runs > 11 {
					panic("the elder has failed")
				}
				n := v.Get(tx)
				if runs <= 10 { // another transaction commits first
					suspend.Bind(sched.NewThread(), func() { _, _ = stm.Try(add(&v, 1)) })
				} else {
					_ = old.TryPut(struct{}{})
				}
				v.Set(tx, n+1)
				return nil
			})
			ended = true
			_ = old.TryPut(struct{}{})
		})
		added := 0
		for i, v := range []*stm.Var[int]{&v, &other} {
			w.Go(fmt.Sprint("inc", i), func(ctx context.Context) {
				if _, err := old.Read(ctx); err == nil && stm.Atomically(ctx, add(v, 1)) == nil {
					added++
				}
			})
		}
		w.OnIdle(func([]string) error { return onlyIf(!ended) })
	}},
}

var stmOpPrograms = []program{
	{"stm, Select of two transactions", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		taken := 0
		w.Go("select", func(ctx context.Context) {
			cx, cy := suspend.CaseOf(takeOp(&x)), suspend.CaseOf(takeOp(&y))
			if won, _ := suspend.SelectOrdered(ctx, cx, cy); won != nil {
				taken++
			}
		})
		w.Go("put", func(context.Context) {
			_ = stm.Atomically(bg, func(tx *stm.Tx) error { return errors.Join(add(&x, 1)(tx), add(&y, 1)(tx)) })
		})
		w.OnIdle(lost)
		w.Check(func() error { return same(2, x.Load()+y.Load()+taken) })
	}},
	// A value is received or taken, or nothing has happened, even if the transaction becomes stale when the sender arrives.
	{"stm, Select and a rendezvous", "3 × 1", stmSelect(func(ctx context.Context, tx *suspend.Case[int], recv *suspend.Case[int]) (suspend.Selectable, error) {
		return suspend.SelectOrdered(ctx, tx, recv)
	})},
	{"stm, Select and a rendezvous, first", "3 × 1", stmSelect(func(ctx context.Context, tx *suspend.Case[int], recv *suspend.Case[int]) (suspend.Selectable, error) {
		return suspend.SelectOrdered(ctx, recv, tx)
	})},
	{"stm, Select on both sides", "2 × 1", func(w *explore.World) {
		var v stm.Var[int]
		c := chanx.New[int](0)
		moved, got := 0, 0
		w.Go("give", func(ctx context.Context) {
			put, send := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) { return 0, add(&v, 1)(tx) })), suspend.CaseOf(c.SendOp(1))
			if won, _ := suspend.SelectOrdered(ctx, send, put); won != nil {
				moved++
			}
		})
		w.Go("get", func(ctx context.Context) {
			tx, recv := suspend.CaseOf(takeOp(&v)), suspend.CaseOf(c.RecvOp())
			if won, _ := suspend.SelectOrdered(ctx, tx, recv); won != nil {
				got++
			}
		})
		w.OnIdle(func([]string) error { return onlyIf(moved == got) })
		w.Check(func() error { return same(moved, got+v.Load()) })
	}},
	{"stm, TrySelect", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		taken := 0
		w.Go("try", func(ctx context.Context) {
			cx, cy := suspend.CaseOf(takeOp(&x)), suspend.CaseOf(takeOp(&y))
			if won, _ := suspend.TrySelect(ctx, cx, cy); won != nil {
				taken++
			}
		})
		w.Go("put", func(ctx context.Context) {
			_ = stm.Atomically(bg, add(&y, 1))
			_ = stm.Atomically(bg, add(&x, 1))
		})
		w.Check(func() error { return same(2, x.Load()+y.Load()+taken) })
	}},
	{"stm, Then", "2 × 1", func(w *explore.World) {
		var v stm.Var[int]
		called, taken := 0, 0
		w.Go("then", func(ctx context.Context) {
			suspend.Then(ctx, takeOp(&v), suspend.Here().(suspend.Executor), func(_ int, err error) {
				if called++; err == nil {
					taken++
				} else if ctx.Err() == nil {
					panic(err)
				}
			})
		})
		w.Go("put", func(context.Context) { _ = stm.Atomically(bg, add(&v, 1)) })
		w.Check(func() error { return errors.Join(same(1, called), same(1, taken+v.Load())) })
	}},
	{"stm, Then, two of one", "3 × 1", func(w *explore.World) {
		var v stm.Var[int]
		called, taken := 0, 0
		for _, name := range []string{"then", "then2"} {
			w.Go(name, func(ctx context.Context) {
				suspend.Then(ctx, takeOp(&v), suspend.Here().(suspend.Executor), func(_ int, err error) {
					if called++; err == nil {
						taken++
					} else if ctx.Err() == nil {
						panic(err)
					}
				})
			})
		}
		w.Go("put", func(context.Context) {
			_ = stm.Atomically(bg, add(&v, 1))
			_ = stm.Atomically(bg, add(&v, 1))
		})
		w.Check(func() error { return errors.Join(same(2, called), same(2, taken+v.Load())) })
	}},
	{"stm, a case behind the elder", "2 × 1", func(w *explore.World) {
		stm.Reset()
		var v, other stm.Var[int]
		var old mvar.MVar[struct{}]
		runs, added := 0, 0
		w.Go("long", func(ctx context.Context) {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				n := v.Get(tx)
				if runs++; runs <= 10 {
					suspend.Bind(sched.NewThread(), func() { _, _ = stm.Try(add(&v, 1)) })
				} else {
					_ = old.TryPut(struct{}{})
				}
				v.Set(tx, n+1)
				return nil
			})
			_ = old.TryPut(struct{}{})
		})
		w.Go("select", func(ctx context.Context) {
			if _, err := old.Read(bg); err != nil {
				return
			}
			inc := stm.Op(func(tx *stm.Tx) (int, error) { return 0, add(&other, 1)(tx) })
			if _, err := suspend.Do(ctx, inc); err == nil {
				added++
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return same(added, other.Load()) })
	}},
	{"stm, Choose", "2 × 1", func(w *explore.World) {
		var x, y stm.Var[int]
		taken := 0
		w.Go("choose", func(ctx context.Context) {
			if _, err := suspend.Do(ctx, suspend.Choose(takeOp(&x), takeOp(&y))); err == nil {
				taken++
			}
		})
		w.Go("put", func(context.Context) { _ = stm.Atomically(bg, add(&y, 1)) })
		w.OnIdle(lost)
		w.Check(func() error { return same(1, y.Load()+taken) })
	}},
}

// stmSelect has a task that takes from a Var or receives, one that sets the Var, and one that sends.
func stmSelect(perform func(ctx context.Context, tx, recv *suspend.Case[int]) (suspend.Selectable, error)) func(w *explore.World) {
	return func(w *explore.World) {
		var v stm.Var[int]
		c := chanx.New[int](0)
		taken, sent, received := 0, 0, 0
		w.Go("select", func(ctx context.Context) {
			tx, recv := suspend.CaseOf(takeOp(&v)), suspend.CaseOf(c.RecvOp())
			switch won, _ := perform(ctx, tx, recv); won {
			case tx:
				taken++
			case recv:
				received++
			}
		})
		w.Go("put", func(context.Context) { _ = stm.Atomically(bg, add(&v, 1)) })
		w.Go("send", func(ctx context.Context) {
			if c.Send(ctx, 1) == nil {
				sent++
			}
		})
		w.OnIdle(func(waiting []string) error { return onlyIf(len(waiting) == 1 && waiting[0] == "send") })
		w.Check(func() error { return errors.Join(same(1, v.Load()+taken), same(sent, received)) })
	}
}

func takeOp(v *stm.Var[int]) suspend.Op[int] {
	return stm.Op(func(tx *stm.Tx) (int, error) { return 1, take(v)(tx) })
}

func add(v *stm.Var[int], n int) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+n); return nil }
}

func take(v *stm.Var[int]) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error {
		if v.Get(tx) <= 0 {
			return stm.Retry
		}
		return add(v, -1)(tx)
	}
}

// stmRetry has consumers of one value each, and a producer of the given number of values.
func stmRetry(consumers, made int) func(w *explore.World) {
	return func(w *explore.World) {
		var v stm.Var[int]
		taken := 0
		for i := range consumers {
			w.Go(fmt.Sprint("take", i), func(ctx context.Context) {
				if stm.Atomically(ctx, take(&v)) == nil {
					taken++
				}
			})
		}
		w.Go("put", func(context.Context) { _ = stm.Atomically(bg, add(&v, made)) })
		w.OnIdle(lost)
		w.Check(func() error { return same(made, v.Load()+taken) })
	}
}

// stmWide waits for one of three Vars, to which the waiter is linked one after another, while others commit to the given Vars.
func stmWide(atomically func(ctx context.Context, f func(tx *stm.Tx) error) error, changed ...int) func(w *explore.World) {
	return func(w *explore.World) {
		var vars [3]stm.Var[int]
		taken := 0
		w.Go("take", func(ctx context.Context) {
			if atomically(ctx, func(tx *stm.Tx) error { return stm.OrElse(tx, take(&vars[0]), take(&vars[1]), take(&vars[2])) }) == nil {
				taken++
			}
		})
		for _, i := range changed {
			w.Go(fmt.Sprint("put", i), func(context.Context) { _ = stm.Atomically(bg, add(&vars[i], 1)) })
		}
		w.OnIdle(lost)
		w.Check(func() error { return same(len(changed), vars[0].Load()+vars[1].Load()+vars[2].Load()+taken) })
	}
}

// stmCase runs f as a case of a Select.
func stmCase(ctx context.Context, f func(tx *stm.Tx) error) error {
	_, err := suspend.Do(ctx, stm.Op(func(tx *stm.Tx) (int, error) { return 0, f(tx) }))
	return err
}
