package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/suspend"
)

// carried runs n new tasks of ten steps each, and returns the number of steps that are made outside, and the tasks.
func carried(c *caution, n int) (steps int, tasks []*Task) {
	for range n {
		t := &Task{period: c.period - 1}
		tasks = append(tasks, t)
		for range 10 {
			if c.carries(t) {
				steps++
			}
		}
	}
	return steps, tasks
}

// A careful period ends after a number of proofs, or after its time. A slow step extends it.
func TestCaution(t *testing.T) {
	c := newCaution(time.Hour)
	steps, _ := carried(&c, 10)
	require.Zero(t, steps)

	c.beginPeriod(time.Now())
	c.expire()
	steps, tasks := carried(&c, 1000)
	require.Equal(t, enough, steps)
	require.False(t, c.careful())

	stuck := &Task{}
	c.taken(stuck)
	require.EqualValues(t, sticky, stuck.outside)
	carried(&c, enough/proofs-1)
	slow := tasks[0]
	slow.slow = true
	c.proved(slow)
	require.EqualValues(t, sticky, slow.outside)
	steps, _ = carried(&c, 1000)
	require.Equal(t, proofs+more, steps)

	slow.slow = true
	c.proved(slow) // after the end of the period, no other task has to prove itself
	steps, _ = carried(&c, 10)
	require.Zero(t, steps)

	c.beginPeriod(time.Now().Add(-carefulFor * c.after))
	c.expire()
	require.False(t, c.careful())
}

// A long turn is ended. It begins a careful period only if it had few steps.
func TestOverdue(t *testing.T) {
	for steps, careful := range map[int]bool{1: true, shortInStuck - 1: true, shortInStuck + 1: false, publishing: false} {
		r := New(nil, func() {}, nil, suspend.ErrClosed)
		r.Lease(10*time.Millisecond, nil)
		r.budget = publishing - steps
		r.Overdue(time.Now(), 10*time.Millisecond)
		require.Equal(t, careful, r.lease.caution.careful(), steps)
		require.Zero(t, r.budget)
	}
}
