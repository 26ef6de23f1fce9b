package collections_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/stm/collections"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

// A world holds one collection of each type and a Var, and a call is an operation on one of them.
type world struct {
	m     collections.Map[int, int]
	open  collections.Queue[int]
	bound *collections.Queue[int]
	slot  collections.Slot[int]
	count stm.Var[int64]
}

const bound = 3

func newWorld() *world { return &world{bound: collections.NewQueue[int](bound)} }

// A state is the model of a world.
type state struct {
	m           map[int]int
	open, bound []int
	slot        []int
	count       int64
}

func (s state) clone() state {
	s.m = maps.Clone(s.m)
	if s.m == nil {
		s.m = map[int]int{}
	}
	s.open, s.bound, s.slot = slices.Clone(s.open), slices.Clone(s.bound), slices.Clone(s.slot)
	return s
}

type call struct {
	name string
	k, v int
}

// do performs c in a transaction.
func (w *world) do(tx *stm.Tx, c call) (got string, err error) {
	var x int
	switch c.name {
	case "get":
		v, ok := w.m.Get(tx, c.k)
		got = fmt.Sprint(v, ok)
	case "set":
		w.m.Set(tx, c.k, c.v)
	case "delete":
		got = fmt.Sprint(w.m.Delete(tx, c.k))
	case "len":
		got = fmt.Sprint(w.m.Len(tx), maps.Collect(w.m.All(tx)))
	case "put":
		err = w.open.Put(tx, c.v)
	case "take":
		x, err = w.open.Take(tx)
	case "bput":
		err = w.bound.Put(tx, c.v)
	case "btake":
		x, err = w.bound.Take(tx)
	case "fill":
		err = w.slot.Put(tx, c.v)
	case "empty":
		x, err = w.slot.Take(tx)
	case "read":
		x, err = w.slot.Read(tx)
	case "count":
		w.count.Set(tx, w.count.Get(tx)+int64(c.v)-5)
		got = fmt.Sprint(w.count.Get(tx))
	case "check":
		if w.count.Get(tx) > int64(c.v)-5 {
			err = stm.Retry
		}
	}
	return got + fmt.Sprint(" ", x), err
}

// on performs c on the model. It returns false if do must return Retry.
func (c call) on(s *state) (got string, ok bool) {
	x, ok := 0, true
	take := func(q *[]int, keep bool) {
		if ok = len(*q) > 0; ok {
			if x = (*q)[0]; !keep {
				*q = (*q)[1:]
			}
		}
	}
	put := func(q *[]int, most int) {
		if ok = len(*q) < most; ok {
			*q = append(*q, c.v)
		}
	}
	switch c.name {
	case "get":
		v, there := s.m[c.k]
		got = fmt.Sprint(v, there)
	case "set":
		s.m[c.k] = c.v
	case "delete":
		_, there := s.m[c.k]
		delete(s.m, c.k)
		got = fmt.Sprint(there)
	case "len":
		got = fmt.Sprint(len(s.m), s.m)
	case "put":
		put(&s.open, 1<<30)
	case "take":
		take(&s.open, false)
	case "bput":
		put(&s.bound, bound)
	case "btake":
		take(&s.bound, false)
	case "fill":
		put(&s.slot, 1)
	case "empty":
		take(&s.slot, false)
	case "read":
		take(&s.slot, true)
	case "count":
		s.count += int64(c.v) - 5
		got = fmt.Sprint(s.count)
	case "check":
		ok = s.count <= int64(c.v)-5
	}
	return got + fmt.Sprint(" ", x), ok
}

var names = []string{"get", "set", "set", "set", "delete", "len", "put", "put", "take", "bput", "bput", "btake", "fill", "empty", "read", "count", "check"}

// Random transactions of several operations have the same results as maps and slices. A transaction that cannot continue leaves
// nothing behind.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, s := newWorld(), state{}.clone()
		keys := rapid.SampledFrom([]int{3, 500}).Draw(rt, "keys")
		for range rapid.IntRange(1, 60).Draw(rt, "transactions") {
			calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
				return call{rapid.SampledFrom(names).Draw(t, "name"), rapid.IntRange(0, keys-1).Draw(t, "k"), rapid.IntRange(0, 10).Draw(t, "v")}
			}), 1, 20).Draw(rt, "calls")
			after, can := s.clone(), true
			var want, got []string
			for _, c := range calls {
				var g string
				if g, can = c.on(&after); !can {
					break
				}
				want = append(want, g)
			}
			ok, err := stm.Try(func(tx *stm.Tx) error {
				got = nil
				for _, c := range calls {
					g, err := w.do(tx, c)
					if err != nil {
						return err
					}
					got = append(got, g)
				}
				return nil
			})
			require.NoError(rt, err)
			require.Equal(rt, can, ok)
			require.Equal(rt, want, got)
			if can {
				s = after
			}
		}
	})
}

// A map that grows keeps its keys. It is empty after all keys were deleted.
func TestMapGrows(t *testing.T) {
	var m collections.Map[string, int]
	const n = 5000
	for i := range n {
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { m.Set(tx, fmt.Sprint(i), i); return nil }))
	}
	require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
		require.Equal(t, n, m.Len(tx))
		for i := range n {
			v, ok := m.Get(tx, fmt.Sprint(i))
			require.True(t, ok)
			require.Equal(t, i, v)
		}
		for k := range m.All(tx) { // changes the map during the iteration
			require.True(t, m.Delete(tx, k))
		}
		require.Zero(t, m.Len(tx))
		return nil
	}))
	for range m.All(nil2(t)) {
		t.Error("it is empty")
	}
}

// nil2 returns the Tx of a transaction that runs until the test ends.
func nil2(t *testing.T) (tx *stm.Tx) {
	var over sync.WaitGroup
	begun, end := make(chan *stm.Tx), make(chan struct{})
	over.Go(func() { _, _ = stm.Try(func(tx *stm.Tx) error { begun <- tx; <-end; return nil }) })
	t.Cleanup(func() { close(end); over.Wait() })
	return <-begun
}

// Transactions run in parallel, on all schedulers, and are cancelled at random. Their results are possible in some sequential
// order.
func TestHistoriesAreLinearizable(t *testing.T) {
	const objects, clients, each = 6, 4, 6
	model := porcupine.Model{
		Init: func() any { return state{}.clone() },
		Step: func(s, in, out any) (bool, any) {
			after := s.(state).clone()
			got, ok := in.(call).on(&after)
			return ok && got == out.(string), after
		},
		Equal: func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) },
	}
	rounds := 4
	if testing.Short() || schedtest.Race {
		rounds = 2
	}
	var outcomes [2]atomic.Int32 // committed and cancelled transactions
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for round := range rounds {
			var all sync.WaitGroup
			var mu sync.Mutex
			histories := make([][]porcupine.Operation, objects)
			for o := range objects {
				w := newWorld()
				var clock atomic.Int64
				for client := range clients {
					rng := rand.New(rand.NewPCG(uint64(round), uint64(o*clients+client)))
					all.Add(1)
					require.NoError(t, next().Go(func() {
						defer all.Done()
						for range each {
							c := call{names[rng.IntN(len(names))], rng.IntN(3), rng.IntN(10)}
							f := func(tx *stm.Tx) (string, error) { return w.do(tx, c) }
							ctx, cancel := context.WithTimeout(bg, time.Duration(1+rng.IntN(1000))*time.Microsecond)
							begun := clock.Add(1)
							var got string
							var err error
							if rng.IntN(2) == 0 {
								got, err = suspend.Do(ctx, stm.Op(f))
							} else {
								got, err = stm.Do(ctx, f)
							}
							ended := clock.Add(1)
							cancel()
							if err != nil {
								outcomes[1].Add(1)
								continue
							}
							outcomes[0].Add(1)
							mu.Lock()
							histories[o] = append(histories[o], porcupine.Operation{ClientId: client, Input: c, Call: begun, Output: got, Return: ended})
							mu.Unlock()
						}
					}))
				}
			}
			all.Wait()
			for _, h := range histories {
				require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, h, 20*time.Second), fmt.Sprint(h))
			}
		}
	})
	require.Positive(t, outcomes[0].Load())
	require.Positive(t, outcomes[1].Load())
}

// Tasks of all schedulers share a bounded queue, which neither loses nor repeats a value, and keeps the order of the Puts.
func TestQueueBetweenTasks(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		q := collections.NewQueue[int](2)
		const n, senders = 50, 3
		var got []int
		fs := []func(){func() {
			for range senders * n {
				x, err := stm.Do(bg, q.Take)
				require.NoError(t, err)
				got = append(got, x)
			}
		}}
		for i := range senders {
			fs = append(fs, func() {
				for j := range n {
					require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { return q.Put(tx, i*n+j) }))
				}
			})
		}
		schedtest.Run(t, s, fs...)
		last := map[int]int{}
		for _, x := range got {
			require.Equal(t, last[x/n], x%n)
			last[x/n]++
		}
		require.Equal(t, map[int]int{0: n, 1: n, 2: n}, last)
	})
}

func TestMisuse(t *testing.T) {
	schedtest.Panics(t, "collections: NewQueue with room for less than one value", func() { collections.NewQueue[int](0) })

	var m collections.Map[any, int] // an entry with the key NaN could never be found or deleted
	for _, use := range []func(tx *stm.Tx, k any){
		func(tx *stm.Tx, k any) { m.Get(tx, k) },
		func(tx *stm.Tx, k any) { m.Set(tx, k, 1) },
		func(tx *stm.Tx, k any) { m.Delete(tx, k) },
	} {
		schedtest.Panics(t, "collections: a key that is not equal to itself, such as NaN", func() {
			_ = stm.Atomically(bg, func(tx *stm.Tx) error { use(tx, math.NaN()); return nil })
		})
	}
	entries, err := stm.Do(bg, func(tx *stm.Tx) (int, error) { return m.Len(tx), nil })
	require.NoError(t, err)
	require.Zero(t, entries)
}

// Stats counts why transactions wait or run again.
func TestStats(t *testing.T) {
	var slot collections.Slot[int]
	var v stm.Var[int]
	before := stm.ReadStats()
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			_, err := stm.Do(bg, slot.Take)
			require.NoError(t, err)
		}, func() {
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { return slot.Put(tx, 1) }))
		})
	})
	runs := 0
	require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
		n := v.Get(tx)
		if runs++; runs <= 10 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = stm.Try(func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+1); return nil })
			}()
			<-done
		}
		v.Set(tx, n)
		return nil
	}))
	after := stm.ReadStats()
	require.GreaterOrEqual(t, after.Commits-before.Commits, int64(11))
	require.GreaterOrEqual(t, after.Conflicts-before.Conflicts, int64(10))
	require.GreaterOrEqual(t, after.Elders-before.Elders, int64(1))
	require.Positive(t, after.Waits-before.Waits)
}

// A map that was emptied gives its memory back. Len reads few Vars, however many keys there are or were.
func TestMapShrinks(t *testing.T) {
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	var m collections.Map[int, int]
	const n = 20_000
	reads := func(f func(tx *stm.Tx)) (all int) {
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			f(tx)
			all = int(reflect.ValueOf(tx).Elem().FieldByName("reads").Len())
			return nil
		}))
		return all
	}
	length := func(want int) int {
		return reads(func(tx *stm.Tx) { require.Equal(t, want, m.Len(tx)) })
	}
	before := heap()
	most := 0
	for i := range n {
		most = max(most, reads(func(tx *stm.Tx) { m.Set(tx, i, i) }))
		if i%1000 == 0 {
			require.LessOrEqual(t, length(i+1), 16+2*256)
		}
	}
	require.LessOrEqual(t, most, 20, "a Set that grows the map reads few Vars")
	full := heap() - before
	for i := range n {
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { require.True(t, m.Delete(tx, i)); return nil }))
		if i%1000 == 0 {
			require.LessOrEqual(t, length(n-i-1), 16+2*256)
		}
	}
	require.Equal(t, 16, length(0))
	require.Less(t, heap()-before, full/10)
	runtime.KeepAlive(&m)
}
