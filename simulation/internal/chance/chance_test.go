package chance

import (
	"hash/maphash"
	"maps"
	rand1 "math/rand"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0 // because sampling uses cheaprand
	debug.SetGCPercent(-1)
	os.Exit(m.Run())
}

// opened returns a State of the runtime.
func opened(t testing.TB) *State {
	s, err := Open()
	require.NoError(t, err)
	return s
}

// chances lists each kind of randomness in a program, with at least 40 draws.
var chances = map[string]func(t *testing.T) []int{
	"select": func(*testing.T) (got []int) {
		cs := make([]chan int, 5)
		for i := range cs {
			cs[i] = make(chan int)
			close(cs[i])
		}
		for range 40 {
			select {
			case <-cs[0]:
				got = append(got, 0)
			case <-cs[1]:
				got = append(got, 1)
			case <-cs[2]:
				got = append(got, 2)
			case <-cs[3]:
				got = append(got, 3)
			case <-cs[4]:
				got = append(got, 4)
			}
		}
		return got
	},
	"a map of 5":   func(*testing.T) []int { return ranges(five) },
	"a map of 100": func(*testing.T) []int { return ranges(hundred) },
	"math/rand":    func(*testing.T) (got []int) { return fill(rand1.Int) },
	"math/rand/v2": func(*testing.T) (got []int) { return fill(rand.Int) },
	"maphash": func(*testing.T) (got []int) {
		return fill(func() int { return int(maphash.String(maphash.MakeSeed(), "x")) })
	},
	"timers of one moment": func(t *testing.T) (got []int) {
		var m sync.Mutex
		var all sync.WaitGroup
		for i := range 40 {
			all.Add(1)
			time.AfterFunc(time.Second, func() {
				m.Lock()
				got = append(got, i)
				m.Unlock()
				all.Done()
			})
		}
		all.Wait()
		return got
	},
}

var five, hundred = table(5), table(100)

func table(n int) map[int]int { return maps.Collect(slices.All(make([]int, n))) }

func ranges(m map[int]int) (got []int) {
	for range 40 {
		got = slices.AppendSeq(got, maps.Keys(m))
	}
	return got
}

func fill(draw func() int) (got []int) {
	for range 40 {
		got = append(got, draw())
	}
	return got
}

// Each kind of randomness is the same for the same seed, and differs for other seeds. The runtime may draw now and then, so some
// pairs may differ, but not ten.
func TestSeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := opened(t)
	for name, chance := range chances {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seeded := func(seed uint64) []int {
					s.Seed(seed)
					return chance(t)
				}
				var first, again []int
				for i := uint64(0); ; i += 2 {
					if first, again = seeded(i), seeded(i); slices.Equal(first, again) || i == 20 {
						break
					}
				}
				require.Equal(t, first, again)
				require.NotEqual(t, first, seeded(1))
			})
		})
	}
}

// SeedCheap decides selects, and does not change chacha8.
func TestSeedCheap(t *testing.T) {
	s := opened(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.Seed(1)
	want := fill(rand.Int)
	s.Seed(1)
	var selects [][]int
	got := fill(func() int {
		s.SeedCheap(uint64(len(selects) % 2))
		selects = append(selects, chances["select"](t))
		return rand.Int()
	})
	if !s.Overlaid() {
		require.Equal(t, want, got)
		same, other := 0, 0
		for i := range selects[2:] {
			same += count(slices.Equal(selects[i], selects[i+2]))
			other += count(slices.Equal(selects[i], selects[i+1]))
		}
		require.Greater(t, same, 30)
		require.Zero(t, other)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Two goroutines that are locked to their threads each draw from their own seed, whatever the other does. They alternate without
// the scheduler, which draws from chacha8 under -race.
func TestThreads(t *testing.T) {
	s := opened(t)
	run := func(seeds ...uint64) (got [2][]int) {
		var turn atomic.Int32
		var both sync.WaitGroup
		for me, seed := range seeds {
			both.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				for turn.Load() != int32(me) {
				}
				s.Seed(seed)
				for range 2 {
					for turn.Load()%2 != int32(me) {
					}
					got[me] = append(got[me], fill(rand.Int)...)
					turn.Add(1)
				}
			})
		}
		both.Wait()
		return got
	}
	first, second := run(1, 2), run(1, 3)
	require.Equal(t, first[0], second[0])
	require.NotEqual(t, first[1], second[1])
}

// Goroutines that are not locked may set the state of a thread from which another goroutine draws, or which another one opens.
// This is safe.
func TestWithoutLocks(t *testing.T) {
	s := opened(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range uint64(2000) {
				s.Seed(i)
				rand.Int()
			}
			opened(t)
		})
	}
	all.Wait()
}

// A different runtime is refused: Open finds no state, or a state from which programs do not draw.
func TestOpenRefuses(t *testing.T) {
	own := rand.NewPCG(1, 2)
	calls := 0
	for name, runtimes := range map[string]struct {
		draw  func() uint64
		cheap func() uint32
	}{
		"draws of a generator elsewhere":       {own.Uint64, drawCheap},
		"cheap draws of a generator elsewhere": {draw, func() uint32 { return uint32(own.Uint64()) }},
		"no chance":                            {draw, func() uint32 { return 1 }},
		"draws that do not follow": {func() uint64 {
			if calls++; calls%2 == 0 {
				return own.Uint64()
			}
			return draw()
		}, drawCheap},
		"selects that do not follow": {draw, func() uint32 { return uint32(draw()) }},
	} {
		s, err := open(runtimes.draw, runtimes.cheap)
		require.Nil(t, s, name)
		require.ErrorContains(t, err, runtime.Version(), name)
	}
}

func BenchmarkSeed(b *testing.B) {
	s := opened(b)
	b.Run("both", func(b *testing.B) {
		for i := range b.N {
			s.Seed(uint64(i))
		}
	})
	b.Run("cheap", func(b *testing.B) {
		for i := range b.N {
			s.SeedCheap(uint64(i))
		}
	})
}
