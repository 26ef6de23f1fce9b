package stm_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A queue holds its values in one Var. A slice in a Var must not be modified, so put copies it.
type queue struct{ values stm.Var[[]string] }

func (q *queue) put(tx *stm.Tx, v string) error {
	q.values.Set(tx, append(slices.Clone(q.values.Get(tx)), v))
	return nil
}

func (q *queue) take(tx *stm.Tx) (string, error) {
	values := q.values.Get(tx)
	if len(values) == 0 {
		return "", stm.Retry
	}
	q.values.Set(tx, values[1:])
	return values[0], nil
}

func Example_queue() {
	ctx := context.Background()
	var q queue
	go func() { _ = stm.Atomically(ctx, func(tx *stm.Tx) error { return q.put(tx, "a") }) }()
	v, err := stm.Do(ctx, q.take) // suspends until q has a value
	fmt.Println(v, err)
	// Output: a <nil>
}

// A bounded queue holds at most max values.
type bounded struct {
	queue
	max int
}

func (q *bounded) put(tx *stm.Tx, v string) error {
	if len(q.values.Get(tx)) == q.max {
		return stm.Retry
	}
	return q.queue.put(tx, v)
}

func Example_bounded() {
	ctx := context.Background()
	q := &bounded{max: 1}
	putB := func(tx *stm.Tx) error { return q.put(tx, "b") }
	_ = stm.Atomically(ctx, func(tx *stm.Tx) error { return q.put(tx, "a") })
	put, err := stm.Try(putB) // never waits
	fmt.Println(put, err)

	go func() { _, _ = stm.Do(ctx, q.take) }()
	fmt.Println(stm.Atomically(ctx, putB)) // suspends until "a" was taken
	// Output:
	// false <nil>
	// <nil>
}

func Example_timeout() {
	ctx := context.Background()
	var q queue
	value, late := suspend.CaseOf(stm.Op(q.take)), suspend.CaseOf(suspend.After(time.Millisecond))
	switch won, err := suspend.Select(ctx, value, late); won {
	case value:
		fmt.Println(value.Result())
	case late:
		fmt.Println("no value within a millisecond")
	default:
		fmt.Println(err) // ctx has ended
	}
	// Output: no value within a millisecond
}

func Example_orElse() {
	ctx := context.Background()
	var urgent, normal queue
	next := func(tx *stm.Tx) (v string, err error) {
		takeFrom := func(q *queue) func(*stm.Tx) error {
			return func(tx *stm.Tx) (err error) {
				v, err = q.take(tx)
				return err
			}
		}
		err = stm.OrElse(tx, takeFrom(&urgent), takeFrom(&normal))
		return v, err
	}
	_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
		_ = normal.put(tx, "n")
		return urgent.put(tx, "u")
	})
	fmt.Println(stm.Do(ctx, next))
	fmt.Println(stm.Do(ctx, next)) // a third call would wait for either queue
	// Output:
	// u <nil>
	// n <nil>
}
