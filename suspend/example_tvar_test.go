package suspend_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
)

// A TVar is a variable of software transactional memory, in the manner of Harris, Marlow, Peyton Jones and Herlihy
// (2005): what a transaction reads and writes happens at once or not at all, and one that cannot go on retries when
// something that it has read has changed. It is made of a Guard, a Queue and an Op, outside the module.
type TVar struct {
	guard   suspend.Guard
	value   int
	version int
	waiters suspend.Queue[struct{}, int] // with the version that was read
}

// A Tx is one run of a transaction.
type Tx struct {
	reads  map[*TVar]int // version
	writes map[*TVar]int // value
}

var ErrRetry = errors.New("retry")

func (tx *Tx) Get(v *TVar) int {
	if x, ok := tx.writes[v]; ok {
		return x
	}
	v.guard.Lock()
	defer v.guard.Unlock()
	if _, ok := tx.reads[v]; !ok {
		tx.reads[v] = v.version
	}
	return v.value
}

func (tx *Tx) Set(v *TVar, x int) { tx.Get(v); tx.writes[v] = x }

// Atomically runs f, again and again: when others have changed what it has read, at once; when it returns ErrRetry, when
// they have.
func Atomically(ctx context.Context, f func(tx *Tx) error) error {
	for {
		tx := &Tx{map[*TVar]int{}, map[*TVar]int{}}
		err := f(tx)
		switch {
		case err == ErrRetry:
			var changes []suspend.Op[struct{}]
			for v, version := range tx.reads {
				changes = append(changes, suspend.OpOf[struct{}](&change{v, version}))
			}
			if _, err := suspend.Do(ctx, suspend.Choose(changes...)); err != nil {
				return err
			}
		case err != nil || tx.commit():
			return err
		}
	}
}

func (tx *Tx) commit() bool {
	var guards []*suspend.Guard
	for v := range tx.reads {
		guards = append(guards, &v.guard)
	}
	for _, g := range suspend.LockAll(guards) {
		defer g.Unlock()
	}
	for v, version := range tx.reads {
		if v.version != version {
			return false
		}
	}
	for v, x := range tx.writes {
		v.value, v.version = x, v.version+1
		v.waiters.ResumeAll(struct{}{}, nil)
	}
	return true
}

// A change is the operation that waits for another version.
type change struct {
	v       *TVar
	version int
}

func (c *change) Guard() *suspend.Guard                 { return &c.v.guard }
func (c *change) Try() (v struct{}, ok bool, err error) { return v, c.v.version != c.version, nil }
func (c *change) Enqueue(r suspend.Resumer[struct{}])   { c.v.waiters.Push(r, c.version) }
func (c *change) Remove(r suspend.Resumer[struct{}])    { c.v.waiters.Remove(r) }

func ExampleLockAll() {
	var from, to TVar
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			_ = Atomically(ctx, func(tx *Tx) error {
				tx.Set(&from, tx.Get(&from)+100)
				return nil
			})
		})
		return Atomically(ctx, func(tx *Tx) error {
			if tx.Get(&from) < 70 {
				return ErrRetry // suspends until somebody writes it
			}
			tx.Set(&from, tx.Get(&from)-70)
			tx.Set(&to, tx.Get(&to)+70)
			return nil
		})
	})
	fmt.Println(from.value, to.value)
	// Output: 30 70
}
