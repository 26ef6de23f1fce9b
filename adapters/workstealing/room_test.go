//go:build !explore

package workstealing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Entries whose steps are long go to the injector, however short the steps before were.
func TestLongStepsLeaveNoRoom(t *testing.T) {
	s := newStill()
	w := s.all[0]
	require.True(t, w.takes(entry{f: func() {}}))
	w.stays()
	for range measureEvery {
		w.counted()
	}
	require.Zero(t, w.room)
	require.Zero(t, w.queue.len())
	require.EqualValues(t, 1, s.injector.len())
	require.False(t, w.takes(entry{f: func() {}}))
	for want := 1; want < queueSize; want = 2*want + 1 {
		w.steps = 1 << 20 // short ones again
		w.measure()
		require.Equal(t, want, w.room, "the room grows slowly")
	}
}

// A sleep is not a long step: after it, a worker has the room that it had before.
func TestASleepKeepsTheRoom(t *testing.T) {
	s := newStill()
	w := s.all[0]
	w.steps = measureEvery - 1
	w.stays()
	w.woke()
	for range measureEvery {
		w.counted()
	}
	require.Equal(t, queueSize, w.room)
}
