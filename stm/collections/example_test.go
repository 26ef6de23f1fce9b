package collections_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/stm/collections"
)

// An order leaves one queue, reduces the stock and enters another queue in a single transaction. If the stock is too small, or
// the second queue is full, the order stays where it is.
func Example() {
	type order struct {
		item   string
		number int
	}
	ctx := context.Background()
	var orders collections.Queue[order]
	var stock collections.Map[string, int]
	var sold stm.Var[int]
	var last collections.Slot[string] // the last item that was shipped, until it is taken
	shipped := collections.NewQueue[order](10)

	_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
		stock.Set(tx, "chair", 5)
		return orders.Put(tx, order{"chair", 4})
	})
	ship := func(tx *stm.Tx) error {
		next, err := orders.Take(tx)
		if err != nil {
			return err
		}
		left, _ := stock.Get(tx, next.item)
		if left < next.number {
			return stm.Retry
		}
		stock.Set(tx, next.item, left-next.number)
		sold.Set(tx, sold.Get(tx)+next.number)
		if _, err := last.Read(tx); err == nil {
			_, _ = last.Take(tx)
		}
		_ = last.Put(tx, next.item)
		return shipped.Put(tx, next)
	}
	fmt.Println("shipped:", stm.Atomically(ctx, ship))

	_ = stm.Atomically(ctx, func(tx *stm.Tx) error { return orders.Put(tx, order{"chair", 4}) })
	ok, err := stm.Try(ship)
	fmt.Println("shipped again:", ok, err)

	_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
		left, _ := stock.Get(tx, "chair")
		fmt.Println(left, "in stock,", sold.Get(tx), "sold")
		return nil
	})
	// Output:
	// shipped: <nil>
	// shipped again: false <nil>
	// 1 in stock, 4 sold
}
