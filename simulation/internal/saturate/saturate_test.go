package saturate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlus(t *testing.T) {
	require.Equal(t, time.Duration(5), Plus(2, 3))
	require.Equal(t, time.Duration(1), Plus(-2, 3))
	require.Equal(t, Forever, Plus(Forever, 0))
	require.Equal(t, Forever, Plus(Forever-1, 1))
	require.Equal(t, Forever, Plus(Forever, Forever))
	require.Equal(t, Forever-2, Plus(-2, Forever))
}

func TestRatio(t *testing.T) {
	require.Equal(t, time.Duration(7), Ratio(15, 1, 0, 2))
	require.Equal(t, time.Duration(8), Ratio(15, 1, 1, 2), "rounded up")
	require.Equal(t, Forever, Ratio(Forever, 1<<33, 0, 1<<32))
	require.Equal(t, Forever, Ratio(Forever, 1<<40, 0, 2), "more than 64 bits")
	require.Equal(t, Forever-1, Ratio(Forever-1, 1<<32, 0, 1<<32))
}

func TestRoundUp(t *testing.T) {
	require.Equal(t, 2*time.Second, RoundUp(time.Second+1, time.Second))
	require.Equal(t, time.Second, RoundUp(time.Second, time.Second))
	require.Equal(t, Forever, RoundUp(Forever, time.Second))
}
