package shrinking_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/internal/shrinking"
)

func TestAgainstAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var m shrinking.Map[int, int]
		model := map[int]int{}
		for i := range rapid.IntRange(1, 2000).Draw(rt, "steps") {
			k := rapid.IntRange(0, 300).Draw(rt, "key")
			if i/300%2 == 0 {
				m.Set(k, i)
				model[k] = i
			} else {
				m.Delete(k)
				delete(model, k)
			}
			require.Equal(rt, len(model), m.Len())
		}
		for k := range 301 {
			require.Equal(rt, model[k], m.Get(k))
		}
	})
}

func TestMemoryIsGivenBack(t *testing.T) {
	var m shrinking.Map[int, int]
	before := heap()
	for k := range 200_000 {
		m.Set(k, k)
	}
	require.Greater(t, heap()-before, int64(2<<20)) // half as much with 32 bits
	for k := range 199_990 {
		m.Delete(k)
	}
	require.Less(t, heap()-before, int64(64<<10))
	require.Equal(t, 10, m.Len())
	require.Equal(t, 199_995, m.Get(199_995))
}

func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
