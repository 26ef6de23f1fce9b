// Package effects runs with an overlay. It tests by effect that each edit is on: TestEdits of package edited leaves out one edit after the other, and
// expects that a test fails, or that the runtime does not compile. Each test prints lines "see: x" for what must be the same in each process,
// and different for some other seed.
package effects

import (
	"fmt"
	"hash/maphash"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// order is the order of the two actions of a program in which the first goroutine waits until both have acted. The action of the
// test is a, the action of the goroutine is b.
func order(t *testing.T, program func(act func(name byte))) string {
	var seen []byte
	program(func(name byte) { seen = append(seen, name) }) // one goroutine runs at a time, and no act is at a point
	return string(seen)
}

// TestPoints has, for each kind of operation, two goroutines that each perform the operation and then act. If the operation is a point, some
// seeds let b act first, and some a.
func TestPoints(t *testing.T) {
	var m sync.Mutex
	var rw sync.RWMutex
	var i32 atomic.Int32
	var v atomic.Value
	var once sync.Once
	v.Store(1)
	full, closed := make(chan int, 1000), make(chan int)
	close(closed)
	client, server := tcp(t)
	for name, op := range map[string]func(){
		"Lock":            func() { m.Lock(); m.Unlock() },
		"TryLock":         func() { m.TryLock(); m.Unlock() },
		"RLock":           func() { rw.RLock(); rw.RUnlock() },
		"atomic":          func() { i32.Add(1) },
		"atomic pointers": func() { new(atomic.Pointer[int]).Load() },
		"Value":           func() { v.Load() },
		"Once":            func() { once.Do(func() {}) },
		"send":            func() { full <- 1 },
		"receive":         func() { <-closed },
		"receive, ok":     func() { _, _ = <-closed },
		"close":           func() { close(make(chan int)) },
		"try to send": func() {
			select {
			case full <- 1:
			default:
			}
		},
		"try to receive": func() {
			select {
			case <-closed:
			default:
			}
		},
		"select": func() {
			select {
			case <-closed:
			case full <- 1:
			}
		},
		"Gosched": runtime.Gosched,
		"network": func() { _, _ = client.Write([]byte{1}); _, _ = server.Read(make([]byte, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			see(t, order(t, func(act func(byte)) {
				done := false
				go func() { op(); act('b'); done = true }()
				op()
				act('a')
				for !done {
					runtime.Gosched()
				}
			}))
		})
	}
	t.Run("go", func(t *testing.T) {
		see(t, order(t, func(act func(byte)) {
			done := false
			go func() { act('b'); done = true }()
			act('a')
			for !done {
				runtime.Gosched()
			}
		}))
	})
	t.Run("woken", func(t *testing.T) { // which of two woken goroutines is the first
		see(t, order(t, func(act func(byte)) {
			a, b, done := make(chan bool), make(chan bool), 0
			go func() { <-a; act('a'); done++ }()
			go func() { <-b; act('b'); done++ }()
			time.Sleep(time.Millisecond)
			close(a)
			close(b)
			time.Sleep(time.Millisecond)
			if done != 2 {
				t.Error("time has passed although goroutines could run")
			}
		}))
	})
	t.Run("timers", func(t *testing.T) {
		see(t, order(t, func(act func(byte)) {
			time.AfterFunc(time.Second, func() { act('a') })
			time.AfterFunc(time.Second, func() { act('b') })
			time.Sleep(2 * time.Second)
		}))
	})
	t.Run("timers of a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			see(t, order(t, func(act func(byte)) {
				time.AfterFunc(time.Second, func() { act('a') })
				time.AfterFunc(time.Second, func() { act('b') })
				time.Sleep(2 * time.Second)
			}))
		})
	})
}

// TestChoices has the random choices of a program.
func TestChoices(t *testing.T) {
	c := make(chan int)
	close(c)
	var selects strings.Builder
	for range 20 {
		select {
		case <-c:
			selects.WriteByte('a')
		case <-c:
			selects.WriteByte('b')
		case <-c:
			selects.WriteByte('c')
		}
	}
	t.Run("select", func(t *testing.T) { see(t, selects.String()) })
	t.Run("rand", func(t *testing.T) { see(t, rand.Int()) })
	t.Run("map", func(t *testing.T) {
		m := map[string]int{}
		for i := range 100 {
			m[fmt.Sprint(i)] = i
		}
		for k := range m {
			see(t, k)
			break
		}
	})
	t.Run("clock", func(t *testing.T) {
		now := time.Now()
		see(t, now.Sub(now.Truncate(time.Minute)))
	})
	t.Run("hash", func(t *testing.T) {
		same(t, maphash.Comparable(maphash.MakeSeed(), "x") != 0)
	})
	t.Run("AfterFunc", func(t *testing.T) { // its goroutine has draws of its own
		done := make(chan int)
		time.AfterFunc(time.Second, func() { done <- rand.Int() })
		see(t, <-done)
	})
}

// keys is made before any goroutine has an order, by the hash keys of the process.
var keys = func() string {
	m := map[string]int{}
	var b strings.Builder
	for i := range 64 {
		m[fmt.Sprint("key", i)] = i
	}
	for _, v := range m {
		fmt.Fprint(&b, v, " ")
	}
	return b.String()
}()

// TestProcess is about the process.
func TestProcess(t *testing.T) {
	see(t, fmt.Sprint("hash keys and first random numbers: ", keys))
	if runtime.NumCPU() != 4 || runtime.GOMAXPROCS(3) != 4 || runtime.GOMAXPROCS(0) != 3 {
		t.Error("a program sees 4 processors, and can change the number")
	}
	if v, ok := os.LookupEnv("BRAID_ORDER"); ok {
		t.Error("a child process would have the order", v)
	}
	if got := debug.SetGCPercent(-1); got != -1 {
		t.Error("GOGC is", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 1<<30 {
		t.Error("GOMEMLIMIT is", got)
	}
	started := make(chan bool)
	go func() { close(started) }()
	for begin := time.Now(); ; { // there is one processor, so the goroutine runs only at a point
		select {
		case <-started:
			return
		default:
		}
		if time.Since(begin) > time.Hour {
			t.Fatal("the goroutine does not run")
		}
	}
}

// TestTime sleeps for a year.
func TestTime(t *testing.T) {
	begin := time.Now()
	time.Sleep(365 * 24 * time.Hour)
	year := time.Since(begin)
	if year < 365*24*time.Hour || year > 365*24*time.Hour+time.Second {
		t.Error(year)
	}
	if now := time.Now().Round(0); now.Sub(begin.Round(0)) < 365*24*time.Hour {
		t.Error("the wall clock has stayed behind")
	}
	same(t, fmt.Sprint("elapsed: ", year))
	timeout := time.NewTimer(time.Hour)
	tick := time.NewTicker(20 * time.Minute)
	n := 0
	for over := false; !over; {
		select {
		case <-tick.C:
			n++
		case <-timeout.C:
			over = true
		}
	}
	if n < 2 {
		t.Error(n, "ticks")
	}
	// A program that polls does not stop time.
	var done atomic.Bool
	time.AfterFunc(10*time.Millisecond, func() { done.Store(true) })
	for !done.Load() {
	}
	done.Store(false)
	time.AfterFunc(10*time.Millisecond, func() { done.Store(true) })
	for raw := (*uint32)(nil); !done.Load(); runtime.Gosched() {
		_ = raw
	}
	for begin := time.Now(); time.Since(begin) < 10*time.Millisecond; {
	}
}

// TestNetworkTime has a deadline of package net, and a timeout beside an answer that comes.
func TestNetworkTime(t *testing.T) {
	client, server := tcp(t)
	begin := time.Now()
	_ = client.SetReadDeadline(begin.Add(time.Hour))
	if _, err := client.Read(make([]byte, 1)); err == nil || !err.(net.Error).Timeout() {
		t.Error(err)
	}
	if d := time.Since(begin); d < time.Hour || d > time.Hour+time.Minute {
		t.Error(d)
	}
	_ = client.SetReadDeadline(time.Now().Add(time.Microsecond * 500))
	go func() { _, _ = io.WriteString(server, "answer") }()
	b := make([]byte, 6)
	if _, err := io.ReadFull(client, b); err != nil {
		t.Error("the answer has come too late:", err)
	}
}

// TestChild waits for a process: time is real then.
func TestChild(t *testing.T) {
	c := exec.Command("sleep", "0.3")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the clock has jumped although a process runs")
	}
}

// TestCall is a system call during which the other goroutine must not run, because the call is short, and one that waits.
func TestCall(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, block := int(f.Fd()), make([]byte, 64<<10)
	other := 0
	go func() { other = 1 }()
	before := other
	for range 2000 {
		_, _ = syscall.Pwrite(fd, block, 0) // about 20 µs
		if other != before {
			t.Fatal("another goroutine has run during a short system call")
		}
	}
}

// TestMutex waits for a mutex for longer than a real millisecond. The mutex must not change to its starvation mode, which hands it over.
func TestMutex(t *testing.T) {
	var m sync.Mutex
	m.Lock()
	over := false
	go func() {
		for !over {
			m.Lock()
			m.Unlock()
		}
	}()
	for range 50 {
		runtime.Gosched()
		compute()
		m.Unlock()
		m.Lock()
		if state := (*int32)(unsafe.Pointer(&m)); *state&4 != 0 {
			t.Fatal("the mutex is in its starvation mode")
		}
	}
	over = true
	m.Unlock()
}

// compute takes some milliseconds, and more on a busy machine.
func compute() (x int) {
	for i := range 10_000_000 {
		x = x*7 + i
	}
	return x
}

// TestBubble has a bubble that waits for a mutex of a goroutine outside: this is no deadlock.
func TestBubble(t *testing.T) {
	var m sync.Mutex
	m.Lock()
	go func() {
		time.Sleep(time.Second)
		m.Unlock()
	}()
	synctest.Test(t, func(*testing.T) {
		m.Lock()
		m.Unlock()
	})
}

// TestSpin waits in a loop without a point.
func TestSpin(t *testing.T) {
	var done uint32
	go func() { atomic.StoreUint32(&done, 1) }()
	for atomic.LoadUint32(&done) == 0 {
	}
}

// TestLong computes for some milliseconds, during which the goroutine is not preempted, not even on a busy machine.
func TestLong(t *testing.T) {
	other := false
	go func() { other = true }()
	if other {
		return // it ran at the go statement
	}
	x := 0
	for range 10 {
		x += compute()
	}
	if other {
		t.Error("a goroutine was preempted", x)
	}
}

// TestGarbage has a collection in the middle.
func TestGarbage(t *testing.T) {
	var live [][]byte
	for i := range 1500 {
		live = append(live, make([]byte, 1<<20))
		if i%10 != 0 {
			live[i] = nil
		}
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if stats.NumGC == 0 {
		t.Error("no garbage was collected although 1.5 GB were allocated")
	}
}

func tcp(t *testing.T) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// see prints what must be the same for this seed, and different for another.
func see(t *testing.T, x any) { fmt.Printf("see: %s: %v\n", t.Name(), x) }

// same prints what must be the same for all seeds.
func same(t *testing.T, x any) { fmt.Printf("same: %s: %v\n", t.Name(), x) }
