package effects

import (
	crand "crypto/rand"
	"fmt"
	"hash/maphash"
	"math/rand"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unique"
	"unsafe"
)

// The second process with a seed differs from the first in what no program decides: addresses, what the runtime's own goroutines have done
// before, collections of garbage, and the work of the simulation inside a call for a file.
var (
	second  = os.Getenv("SECOND") != ""
	objects []any
	shared  sync.Map
	pool    sync.Pool
	jobs    = make(chan func())
	done    = make(chan bool)
)

type object struct{ a, b, c, d *int }

func init() {
	go func() { // this goroutine has no order
		for f := range jobs {
			f()
			done <- true
		}
	}()
	if second {
		for range 7 {
			objects = append(objects, new(object), make(chan object), new(byte))
		}
		for i := range 1000 {
			shared.Store(-1-i, i)
			objects = append(objects, unique.Make(-1-i))
		}
	}
}

// unordered calls f on a goroutine without an order, and waits until f returns.
func unordered(f func()) {
	jobs <- f
	<-done
}

// identity is drawn before the first test.
var identity = crand.Text()

// TestSameRandom draws from crypto/rand.
func TestSameRandom(t *testing.T) { see(t, identity+crand.Text()) }

// TestSameHash hashes pointers.
func TestSameHash(t *testing.T) {
	var h maphash.Hash
	seed, text := maphash.MakeSeed(), ""
	h.SetSeed(seed)
	for i := range 10 {
		p := new(object)
		maphash.WriteComparable(&h, p)
		maphash.WriteComparable(&h, "text")
		text += fmt.Sprint(maphash.Comparable(seed, p), maphash.Comparable(seed, struct{ p, q any }{p, i}), " ")
	}
	see(t, text+fmt.Sprint(h.Sum64()))
}

// TestSamePointers ranges over maps whose keys have pointers.
func TestSamePointers(t *testing.T) {
	pointers, keys, structs, channels, tiny := map[*object]int{}, map[any]int{}, map[[1]struct{ p, q any }]int{}, map[chan object]int{}, map[*byte]int{}
	large := map[*object][200]byte{} // the compiler calls other functions for large values
	var m sync.Map
	for i := range 100 {
		p := new(object)
		large[p] = [200]byte{byte(i)}
		pointers[p], keys[p], structs[[1]struct{ p, q any }{{p, i}}], channels[make(chan object)], tiny[new(byte)] = i, i, i, i, i
		m.Store(p, i)
	}
	text := ""
	for _, i := range pointers {
		text += fmt.Sprint(" ", i)
	}
	for _, i := range keys {
		text += fmt.Sprint(" ", i)
	}
	for _, i := range structs {
		text += fmt.Sprint(" ", i)
	}
	for _, i := range channels {
		text += fmt.Sprint(" ", i)
	}
	for _, i := range tiny {
		text += fmt.Sprint(" ", i)
	}
	for p, v := range large {
		if large[p] != v {
			t.Fatal("a key is lost")
		}
		text += fmt.Sprint(" ", v[0])
	}
	m.Range(func(_, i any) bool { text += fmt.Sprint(" ", i); return true })
	see(t, text)
}

// A key is found as long as it is in the map, while other objects are freed and their addresses are used again.
func TestSameFreed(t *testing.T) {
	m, all := map[*object]int{}, make([]*object, 1000)
	for i := range 10_000 {
		k := i % len(all)
		if p := all[k]; p != nil {
			if got, ok := m[p]; !ok || got != i-len(all) {
				t.Fatal("a key is lost")
			}
			delete(m, p)
		}
		all[k] = new(object)
		m[all[k]] = i
		if i%500 == 0 {
			runtime.GC()
		}
	}
	if len(m) != len(all) {
		t.Fatal(len(m))
	}
}

// TestSameSteps performs operations while another goroutine runs. How many steps they take differs between the two processes.
func TestSameSteps(t *testing.T) {
	if second {
		unordered(func() { pool.Put(1) })
	} else {
		unordered(func() { pool.Put(1); runtime.GC() })
	}
	see(t, order(func(act func(byte)) {
		over := make(chan bool)
		go func() {
			for range 40 {
				act('a')
				runtime.Gosched()
			}
			close(over)
		}()
		for i := range 20 {
			pool.Get()
			shared.Store(i, i)
			shared.Load(i)
			shared.Range(func(k, _ any) bool { return k.(int) < 0 })
			unique.Make(i)
			shared.LoadAndDelete(i)
			act('b')
		}
		<-over
	}))
}

// TestSameFiles does more inside a call for a file of a node in one process than in the other.
func TestSameFiles(t *testing.T) {
	calls := 0
	nodeFiles.call = func(uintptr, *[6]uintptr, string, string, []byte, any) (uintptr, syscall.Errno, bool) {
		if nodes.get() != 1000 {
			return 0, 0, false
		}
		nodes.set(1000 | 1<<31)
		if calls++; second && calls%4 == 0 {
			for range 5 {
				compute() // for longer than the monitor lets a goroutine without an order run
			}
		}
		for i := 0; i < 5 || second && i < 20; i++ {
			new(atomic.Int32).Load()
			rand.Int()
			go func() {}()
		}
		nodes.set(1000)
		return 0, syscall.ENOENT, true
	}
	nodes.set(1000)
	seen := order(func(act func(byte)) {
		over := make(chan bool)
		go func() {
			for range 40 {
				act('a')
				runtime.Gosched()
			}
			close(over)
		}()
		for range 10 {
			_, _ = os.ReadFile("/nowhere")
			act('b')
		}
		<-over
	})
	nodes.set(0)
	nodeFiles.call = nil
	see(t, fmt.Sprint(seen, rand.Int()))
}

// TestSameMutex lets a goroutine without an order wait for a mutex for longer than a real millisecond. The mutex must not be handed over.
func TestSameMutex(t *testing.T) {
	var m sync.Mutex
	state := (*int32)(unsafe.Pointer(&m))
	m.Lock()
	jobs <- func() { m.Lock(); m.Unlock() }
	for *state>>3 == 0 {
		runtime.Gosched()
	}
	for range 20 {
		compute()
		m.Unlock()
		m.Lock()
		runtime.Gosched() // the waiter was woken, and may find that the mutex is locked again
		if *state&4 != 0 {
			t.Fatal("the mutex is in its starvation mode")
		}
	}
	m.Unlock()
	<-done
}
