// Bank moves money between accounts. A transfer reads and writes two accounts in one transaction, and an audit reads all of
// them: it sees no account below zero, and no money on its way. A test audits while the transfers run.
//
//	go run ./examples/bank
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

type bank [10]stm.Var[int]

const total = 1000

var errOverdrawn, errLost = errors.New("overdrawn"), errors.New("money is lost")

func newBank() *bank {
	b := new(bank)
	_, _ = stm.Try(func(tx *stm.Tx) error {
		for i := range b {
			b[i].Set(tx, total/len(b))
		}
		return nil
	})
	return b
}

func (b *bank) audit(tx *stm.Tx) error {
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
		left := b[from].Get(tx) - n
		if left < 0 {
			return errOverdrawn // nothing is written
		}
		b[from].Set(tx, left)
		b[to].Set(tx, b[to].Get(tx)+n)
		return nil
	})
}

// storm runs 2,000 transfers in four tasks of s. It returns how many of them were refused.
func (b *bank) storm(ctx context.Context, s suspend.Spawner) (refused int, err error) {
	counts, err := scope.Map(ctx, s, []uint64{1, 2, 3, 4}, func(ctx context.Context, seed uint64) (refused int, _ error) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 500 {
			err := b.transfer(ctx, rng.IntN(len(b)), rng.IntN(len(b)), rng.IntN(150))
			if errors.Is(err, errOverdrawn) {
				refused++
			} else if err != nil {
				return refused, err
			}
		}
		return refused, nil
	})
	for _, n := range counts {
		refused += n
	}
	return refused, err
}

func main() {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	b := newBank()
	refused, err := b.storm(context.Background(), pool)
	ok, auditErr := stm.Try(b.audit)
	fmt.Println("audited:", ok, auditErr, "some refused:", refused > 0, err)
}
