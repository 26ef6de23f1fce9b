package shared

import (
	"context"
	"slices"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/watch"
)

type config struct {
	hosts []string
	limit [2]int
}

type object struct{ items []int }

func wrong(ctx context.Context, list *stm.Var[[]int], index *stm.Var[map[string]int], state *watch.Value[config]) error {
	index.Load()["a"]++                // want `the value that stm.Var.Load has returned is changed in place`
	delete(index.Load(), "a")          // want `the value that stm.Var.Load has returned is changed in place`
	state.Load().Value.hosts[0] = "::" // want `the value that watch.Value.Load has returned is changed in place`
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		list.Get(tx)[0] = 2 // want `the value that stm.Var.Get has returned is changed in place`
		all := list.Get(tx)
		all[1], all[2] = all[2], all[1] // want `changed in place` `changed in place`
		clear(all)                      // want `changed in place`
		part := all[1:]
		part[0] = 1 // want `changed in place`
		return nil
	})
}

func right(ctx context.Context, list *stm.Var[[]int], objects *stm.Var[*object], state *watch.Value[config]) error {
	c := state.Load().Value
	c.limit[0] = 2 // an array is copied
	objects.Load().items[0] = 1
	n := list.Load()[0]
	n++
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		all := slices.Clone(list.Get(tx))
		all[0] = 2
		same := list.Get(tx)
		same = slices.Clone(same)
		same[0] = n
		list.Set(tx, all)
		return nil
	})
}
