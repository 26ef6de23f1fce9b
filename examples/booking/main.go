// Booking reserves rooms and bus seats for groups. A booking takes everything that a group needs, or nothing. If too little is free, the
// booking waits until another group cancels, or until its deadline. A waiting booking holds no lock, so that other groups can book and
// cancel.
//
//	go run ./examples/booking
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/stm/collections"
	"github.com/braidgo/braid/suspend"
)

var (
	errFull   = errors.New("booking: no free seats before the deadline")
	errTwice  = errors.New("booking: already booked")
	errNobody = errors.New("booking: nothing is booked")
)

// A need is the number of rooms and seats that one group needs.
type need struct{ rooms, seats int }

// A desk counts the free rooms and seats, and records the need of each group that has booked.
type desk struct {
	total        need
	rooms, seats stm.Var[int]
	booked       collections.Map[string, need]
}

func newDesk(total need) *desk {
	d := &desk{total: total}
	_, _ = stm.Try(func(tx *stm.Tx) error {
		d.rooms.Set(tx, total.rooms)
		d.seats.Set(tx, total.seats)
		return nil
	})
	return d
}

// book reserves the rooms and seats that a group needs. It waits until enough are free, or returns errFull at the deadline of ctx.
func (d *desk) book(ctx context.Context, group string, n need) error {
	err := stm.Atomically(ctx, func(tx *stm.Tx) error {
		if _, ok := d.booked.Get(tx, group); ok {
			return errTwice
		}
		rooms, seats := d.rooms.Get(tx)-n.rooms, d.seats.Get(tx)-n.seats
		if rooms < 0 || seats < 0 {
			return stm.Retry // waits until a room or a seat is released
		}
		d.rooms.Set(tx, rooms)
		d.seats.Set(tx, seats)
		d.booked.Set(tx, group, n)
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return errFull
	}
	return err
}

// cancel releases the group's rooms and seats, so that a waiting group may book them.
func (d *desk) cancel(ctx context.Context, group string) error {
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		n, ok := d.booked.Get(tx, group)
		if !ok {
			return errNobody
		}
		d.booked.Delete(tx, group)
		d.rooms.Set(tx, d.rooms.Get(tx)+n.rooms)
		d.seats.Set(tx, d.seats.Get(tx)+n.seats)
		return nil
	})
}

// audit returns an error if a room or a seat is booked twice or lost. The transaction sees a consistent snapshot of the desk, without
// half-finished bookings.
func (d *desk) audit(tx *stm.Tx) error {
	sum := need{d.rooms.Get(tx), d.seats.Get(tx)}
	if sum.rooms < 0 || sum.seats < 0 {
		return errors.New("booking: booked twice")
	}
	for _, n := range d.booked.All(tx) {
		sum.rooms += n.rooms
		sum.seats += n.seats
	}
	if sum != d.total {
		return fmt.Errorf("booking: %v of %v are left", sum, d.total)
	}
	return nil
}

// storm starts a task for each group on the given scheduler. Each task books, sleeps and cancels 20 times. The result full is the number of
// bookings that failed with errFull.
func (d *desk) storm(ctx context.Context, on suspend.Spawner, groups []string, patience time.Duration) (full int, err error) {
	counts, err := scope.Map(ctx, on, groups, func(ctx context.Context, group string) (full int, _ error) {
		rng := rand.New(rand.NewPCG(uint64(len(group)), uint64(group[len(group)-1])))
		for range 20 {
			late, done := context.WithTimeout(ctx, patience)
			err := d.book(late, group, need{rng.IntN(4), rng.IntN(12)})
			done()
			if errors.Is(err, errFull) {
				full++
				continue
			}
			if err == nil {
				err = errors.Join(suspend.Sleep(ctx, patience/4), d.cancel(ctx, group))
			}
			if err != nil {
				return full, err
			}
		}
		return full, nil
	})
	for _, n := range counts {
		full += n
	}
	return full, err
}

func main() {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	d := newDesk(need{rooms: 4, seats: 16})
	_, err := d.storm(context.Background(), pool, []string{"ants", "bees", "wasps", "beetles", "moths"}, 4*time.Millisecond)
	ok, auditErr := stm.Try(d.audit)
	fmt.Println("audited:", ok, auditErr, "free:", d.rooms.Load(), d.seats.Load(), err)
}
