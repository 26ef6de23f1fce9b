package mvar_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

func ExampleMVar() {
	// The MVar is both the counter and its lock: Take locks it.
	counter := mvar.NewFull(0)
	_ = fifo.Run(bg, func(ctx context.Context) error {
		for range 3 {
			_ = suspend.Here().Go(func() {
				n, _ := counter.Take(ctx)
				suspend.Yield() // lets the others try to take it
				_ = counter.Put(ctx, n+1)
			})
		}
		return nil
	})
	n, _ := counter.Take(bg)
	fmt.Println(n)
	// Output: 3
}

func ExampleMVar_Modify() {
	m := mvar.NewFull([]string{"a"})
	err := m.Modify(context.Background(), func(s []string) ([]string, error) { return append(s, "b"), nil })
	fmt.Println(err)
	fmt.Println(m.Read(context.Background())) // Read leaves the value in m
	// Output:
	// <nil>
	// [a b] <nil>
}

func ExampleMVar_Swap() {
	config := mvar.NewFull("old")
	fmt.Println(config.Swap(context.Background(), "new"))
	fmt.Println(config.Take(context.Background()))
	// Output:
	// old <nil>
	// new <nil>
}
