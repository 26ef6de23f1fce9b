package closable

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParts(t *testing.T) {
	c := NewParts(2)
	require.True(t, c.Enter(0))
	require.True(t, c.Enter(0))
	require.False(t, c.Leave(1), "an open counter does not end")
	require.False(t, c.Leave(1))
	require.Zero(t, c.Live(), "one part has 2, and the other -2")
	require.True(t, c.Enter(1))
	require.EqualValues(t, 1, c.Live())
	require.False(t, c.Close())
	require.False(t, c.Close(), "once")
	require.False(t, c.Enter(0))
	require.False(t, c.Enter(1))
	require.EqualValues(t, 1, c.Live())
	require.True(t, c.Leave(0), "the last one, of another part")
	require.Zero(t, c.Live())
	require.True(t, NewParts(3).Close(), "empty")
}

// One call reports the end, when nothing that was accepted is left.
func TestOneSeesTheEndOfParts(t *testing.T) {
	const parts = 3
	for range 200 {
		c := NewParts(parts)
		var left, ends atomic.Int64
		var all sync.WaitGroup
		saw := func(last bool) {
			if last {
				ends.Add(1)
				if n := left.Load(); n != 0 {
					t.Errorf("%d are left at the end", n)
				}
			}
		}
		for i := range 4 {
			all.Go(func() {
				for n := i; c.Enter(uint(n % parts)); n++ {
					left.Add(1)
					runtime.Gosched()
					left.Add(-1)
					saw(c.Leave(uint((n + 1) % parts)))
				}
			})
		}
		runtime.Gosched()
		saw(c.Close())
		all.Wait()
		require.EqualValues(t, 1, ends.Load())
		require.Zero(t, c.Live())
	}
}

// Live never counts a part twice, even while Close moves the part. All calls entered through part 0, and all but 1,000 left through the
// other parts.
func TestLiveDuringClose(t *testing.T) {
	for range 1000 {
		c := NewParts(9)
		c.parts[0].n.Store(1_001_000)
		for i := range 8 {
			c.parts[1+i].n.Store(-125_000)
		}
		var all sync.WaitGroup
		all.Go(func() { c.Close() })
		for range 50 {
			if n := c.Live(); n != 1000 {
				t.Errorf("Live is %d", n)
				break
			}
		}
		all.Wait()
	}
}
