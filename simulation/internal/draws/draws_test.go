package draws

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var _ rand.Source = new(Source)

// The values of a source and of the hash are part of what a seed means: old seeds must repeat.
func TestValuesAreFixed(t *testing.T) {
	s := Source(1)
	require.Equal(t, []uint64{0x910a2dec89025cc1, 0xbeeb8da1658eec67}, []uint64{s.Uint64(), s.Uint64()})
	require.Equal(t, uint64(0x4462d09b1f704836), Mix(1, 2))
	require.Equal(t, uint64(0x39b3cfe978927fbd), HashString(7, "twelve bytes"))
	require.Equal(t, HashBytes(7, []byte("twelve bytes")), HashString(7, "twelve bytes"))
}

// Each draw lies in its range, and both ends of the range occur.
func TestRanges(t *testing.T) {
	s := Source(1)
	below, upTo, chance := map[int]bool{}, map[time.Duration]bool{}, 0
	for range 1000 {
		below[s.Below(3)] = true
		upTo[s.UpTo(2)] = true
		if s.Chance(0.25) {
			chance++
		}
	}
	require.Equal(t, map[int]bool{0: true, 1: true, 2: true}, below)
	require.Equal(t, map[time.Duration]bool{0: true, 1: true, 2: true}, upTo)
	require.InDelta(t, 250, chance, 60)
	was := s
	require.False(t, s.Chance(0))
	require.Equal(t, was, s, "a probability of zero draws nothing")
}

// A hash depends on each byte, and on the length.
func TestHashSeesEachByte(t *testing.T) {
	p := []byte("a longer text, of three words and more")
	of := map[uint64]bool{HashBytes(0, p): true}
	for i := range p {
		q := append([]byte(nil), p...)
		q[i]++
		of[HashBytes(0, q)] = true
		of[HashBytes(0, p[:i])] = true
	}
	require.Len(t, of, 2*len(p)+1)
}
