package effects

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe"
)

//go:linkname nodes runtime.nodeWorld
var nodes struct {
	set     func(id uint32)
	get     func() uint32
	crash   func(id uint32)
	blocked func() int64
}

var lastNode uint32

// onNode starts a goroutine of a new node.
func onNode(f func()) (id uint32) {
	lastNode++
	id = lastNode
	go func() {
		nodes.set(id)
		f()
	}()
	return id
}

// untilBlocked lets other goroutines run until each is blocked.
func untilBlocked() {
	for range 1000 {
		runtime.Gosched()
	}
}

// leaky calls f in a bubble, whose goroutines may remain.
func leaky(t *testing.T, f func(t *testing.T)) {
	defer func() {
		if v := recover(); v != nil && !strings.HasPrefix(fmt.Sprint(v), "deadlock: ") {
			panic(v)
		}
	}()
	synctest.Test(t, f)
}

// TestNodes tests that goroutines belong to the node of the goroutine that has started them, also through timers.
func TestNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := func(start func(f func())) uint32 {
			node := make(chan uint32)
			start(func() { node <- nodes.get() })
			return <-node
		}
		after := func(f func()) { time.AfterFunc(time.Second, f) }
		for name, c := range map[string]struct {
			want  uint32
			start func(f func())
		}{
			"go":                {7000, func(f func()) { go f() }},
			"AfterFunc":         {7000, after},
			"AfterFunc of go":   {7000, func(f func()) { go after(f) }},
			"AfterFunc, twice":  {7000, func(f func()) { after(func() { after(f) }) }},
			"a reset AfterFunc": {8000, func(f func()) { x := time.AfterFunc(time.Hour, f); nodes.set(8000); x.Reset(time.Second) }},
			"another node":      {8000, func(f func()) { go func() { nodes.set(8000); f() }() }},
			"a context": {7000, func(f func()) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				context.AfterFunc(ctx, func() { cancel(); f() })
			}},
			"a coroutine": {7000, func(f func()) {
				next, stop := iter.Pull(func(func(int) bool) { go f() })
				defer stop()
				next()
			}},
		} {
			nodes.set(7000)
			if got := seen(c.start); got != c.want {
				t.Errorf("%s: node %d instead of %d", name, got, c.want)
			}
			nodes.set(0)
		}
		if seen(after) != 0 || seen(func(f func()) { go f() }) != 0 {
			t.Error("a goroutine outside all nodes has a node")
		}
	})
}

// TestNodesCrash crashes a node while its goroutine waits. Then the goroutine never runs again, whatever happens, and does not stop the clock.
func TestNodesCrash(t *testing.T) {
	outside := make(chan int)
	for name, wait := range map[string]func(wake func(f func())){
		"Sleep":             func(func(func())) { time.Sleep(time.Minute) },
		"a Timer":           func(func(func())) { <-time.After(time.Minute) },
		"a Ticker":          func(func(func())) { <-time.Tick(time.Minute) },
		"a receive":         func(wake func(func())) { c := make(chan int); wake(func() { close(c) }); <-c },
		"a channel outside": func(wake func(func())) { wake(func() {}); <-outside },
		"a send": func(wake func(func())) {
			c := make(chan int)
			wake(func() {
				select {
				case <-c:
				default:
				}
			})
			c <- 1
		},
		"select": func(wake func(func())) {
			c := make(chan int)
			wake(func() { close(c) })
			select {
			case <-c:
			case <-make(chan int):
			}
		},
		"a Mutex":   func(wake func(func())) { var m sync.Mutex; m.Lock(); wake(m.Unlock); m.Lock() },
		"RWMutex":   func(wake func(func())) { var m sync.RWMutex; m.Lock(); wake(m.Unlock); m.RLock() },
		"WaitGroup": func(wake func(func())) { var g sync.WaitGroup; g.Add(1); wake(g.Done); g.Wait() },
		"Cond":      func(wake func(func())) { c := sync.NewCond(new(sync.Mutex)); c.L.Lock(); wake(c.Broadcast); c.Wait() },
		"a context": func(func(func())) {
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			<-ctx.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaky(t, func(t *testing.T) {
				ran, fires := false, 0
				wake := func() {}
				id := onNode(func() {
					time.AfterFunc(time.Second, func() { fires++ })
					defer func() { ran = true }()
					wait(func(f func()) { wake = f })
					ran = true
				})
				untilBlocked()
				nodes.crash(id)
				wake()
				time.Sleep(time.Hour)
				untilBlocked()
				if name == "a Ticker" { // nothing can happen: the bubble panics
					defer func() { <-make(chan int) }()
				}
				if ran || fires != 0 {
					t.Errorf("the goroutine has run again: %v; its timer has fired %d times", ran, fires)
				}
			})
		})
	}
}

// TestNodesRunnable crashes a node whose goroutine is runnable, because it was woken or has not begun.
func TestNodesRunnable(t *testing.T) {
	leaky(t, func(t *testing.T) {
		ran := 0
		c := make(chan int, 2)
		id := onNode(func() { <-c; ran++ })
		untilBlocked()
		c <- 1
		nodes.crash(id)
		untilBlocked()
		if ran != 0 {
			t.Error("a goroutine that was woken before the crash has run")
		}
	})
}

// TestNodesOthers tests that goroutines of other nodes do not notice the crash of a goroutine that waits with them.
func TestNodesOthers(t *testing.T) {
	leaky(t, func(t *testing.T) {
		c, got := make(chan int), 0
		id := onNode(func() { <-c })
		untilBlocked()
		onNode(func() { got = <-c })
		untilBlocked()
		nodes.crash(id)
		c <- 5
		untilBlocked()
		if got != 5 {
			t.Error("a goroutine of a crashed node has received a value")
		}
		select {
		case c <- 6:
			t.Error("a goroutine of a crashed node has received a value")
		default:
		}
	})
	leaky(t, func(t *testing.T) {
		var m sync.Mutex
		var locked atomic.Int32
		lock := func() { m.Lock(); locked.Add(1); m.Unlock() }
		m.Lock()
		id := onNode(lock)
		untilBlocked()
		onNode(lock)
		onNode(lock)
		untilBlocked()
		nodes.crash(id)
		m.Unlock()
		untilBlocked()
		if lock(); locked.Load() != 3 {
			t.Errorf("%d goroutines have locked the mutex for which a crashed node waits", locked.Load())
		}
	})
}

// TestNodesHolder tests that a goroutine that waits for a mutex of a crashed node is found. It leaves its goroutines behind.
func TestNodesHolder(t *testing.T) {
	for name, lock := range map[string]func() (hold, wait func()){
		"Mutex":          func() (hold, wait func()) { m := new(sync.Mutex); return m.Lock, m.Lock },
		"TryLock":        func() (hold, wait func()) { m := new(sync.Mutex); return func() { m.TryLock() }, m.Lock },
		"RWMutex":        func() (hold, wait func()) { m := new(sync.RWMutex); return m.Lock, m.Lock },
		"RWMutex, RLock": func() (hold, wait func()) { m := new(sync.RWMutex); return m.Lock, m.RLock },
		"Once": func() (hold, wait func()) {
			o := new(sync.Once)
			return func() { o.Do(func() { select {} }) }, func() { o.Do(func() {}) }
		},
		"not the crashed": func() (hold, wait func()) {
			m := new(sync.Mutex)
			return func() { m.Lock(); m.Unlock() }, func() { m.Lock(); m.Lock() }
		},
	} {
		for _, early := range []bool{false, true} { // the wait begins before the crash
			t.Run(fmt.Sprint(name, early), func(t *testing.T) {
				hold, wait := lock()
				nodes.blocked() // of an earlier test
				id := onNode(func() { hold(); select {} })
				untilBlocked()
				if early {
					onNode(wait)
					untilBlocked()
				}
				if nodes.blocked() != 0 {
					t.Error("blocked before the crash")
				}
				nodes.crash(id)
				if !early {
					onNode(wait)
					untilBlocked()
				}
				if found := nodes.blocked() != 0; found != (name != "not the crashed") {
					t.Errorf("found: %v", found)
				}
				if nodes.blocked() != 0 {
					t.Error("found twice")
				}
			})
		}
	}
}

// TestNodesOutside tests that a goroutine of a node may wait for a channel that was made outside of its bubble, while time passes.
func TestNodesOutside(t *testing.T) {
	in, out := make(chan int), make(chan int)
	var all sync.WaitGroup
	all.Add(1)
	for name, wait := range map[string]func(){
		"receive": func() { <-in },
		"send":    func() { out <- 1 },
		"select": func() {
			select {
			case <-in:
			case <-make(chan int):
			}
		},
		"WaitGroup": func() { all.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			leaky(t, func(t *testing.T) {
				onNode(wait)
				time.Sleep(time.Hour)
			})
		})
	}
}
