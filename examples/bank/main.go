// Bank has an invariant: no account is overdrawn, and no money comes or goes. Transfers do not look; the commit of one that
// would break the invariant fails.
//
//	go run ./examples/bank
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
)

type bank [10]stm.Var[int]

const total = 1000

var errOverdrawn, errLost = errors.New("overdrawn"), errors.New("money is lost")

func (b *bank) check(tx *stm.Tx) error {
	sum := 0
	for i := range b {
		n := b[i].Get(tx)
		if n < 0 {
			return errOverdrawn
		}
		sum += n
	}
	if sum != total {
		return errLost
	}
	return nil
}

func (b *bank) transfer(ctx context.Context, from, to, n int) error {
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		b[from].Set(tx, b[from].Get(tx)-n)
		b[to].Set(tx, b[to].Get(tx)+n)
		return nil
	})
}

func main() {
	ctx := context.Background()
	var b bank
	err := stm.Atomically(ctx, func(tx *stm.Tx) error {
		for i := range b {
			b[i].Set(tx, total/len(b))
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	stop, err := stm.Always(ctx, b.check)
	if err != nil {
		panic(err)
	}
	defer stop()
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	var refused atomic.Bool
	err = scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		for i := range 4 {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			_ = s.Go(pool, func(ctx context.Context) error {
				for range 500 {
					err := b.transfer(ctx, rng.IntN(len(b)), rng.IntN(len(b)), rng.IntN(150))
					if errors.Is(err, errOverdrawn) {
						refused.Store(true)
					} else if err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	ok, auditErr := stm.Try(b.check)
	fmt.Println("audited:", ok, auditErr, "some refused:", refused.Load(), err)
}
