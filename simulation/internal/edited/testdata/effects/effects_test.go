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
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// order is the order of the actions of a program, which returns when all have happened.
func order(program func(act func(name byte))) string {
	var seen []byte
	program(func(name byte) { seen = append(seen, name) }) // one goroutine runs at a time, and no act is at a point
	return string(seen)
}

// TestPoints performs each kind of operation while another goroutine can always run. Only an operation that is a point lets it run.
func TestPoints(t *testing.T) {
	var m sync.Mutex
	var rw sync.RWMutex
	var i32 atomic.Int32
	var v atomic.Value
	var once sync.Once
	var plain uint32
	v.Store(1)
	full, closed := make(chan int, 1000), make(chan int)
	close(closed)
	client, server := tcp(t)
	for name, op := range map[string]func(){
		"go":              func() { go func() {}() },
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
		"network": func() { _, _ = client.Write([]byte{1}); _, _ = server.Read(make([]byte, 1)) },
		"none":    func() { atomic.AddUint32(&plain, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			turns, over := beside()
			defer over()
			var ran strings.Builder
			for range 20 {
				before := *turns
				op()
				fmt.Fprint(&ran, *turns != before, " ")
			}
			if name != "none" {
				see(t, ran.String())
			} else if strings.Contains(ran.String(), "true") {
				t.Error("the other goroutine has run although no operation is a point")
			}
		})
	}
	t.Run("woken", func(t *testing.T) { // which of two woken goroutines is the first
		see(t, order(func(act func(byte)) {
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
	t.Run("woken at once", func(t *testing.T) { TestWoken(t) })
	t.Run("timers", func(t *testing.T) {
		see(t, order(func(act func(byte)) {
			time.AfterFunc(time.Second, func() { act('a') })
			time.AfterFunc(time.Second, func() { act('b') })
			time.Sleep(2 * time.Second)
		}))
	})
	t.Run("timers of a bubble", func(t *testing.T) { // their draws are not those that the runtime makes for itself
		for range os.Getpid() % 1000 {
			cheaprand()
		}
		synctest.Test(t, func(t *testing.T) {
			see(t, order(func(act func(byte)) {
				time.AfterFunc(time.Second, func() { act('a') })
				time.AfterFunc(time.Second, func() { act('b') })
				time.Sleep(2 * time.Second)
			}))
		})
	})
}

//go:linkname cheaprand runtime.cheaprand
func cheaprand() uint32

// TestWoken has goroutines that one operation wakes.
func TestWoken(t *testing.T) {
	see(t, order(func(act func(byte)) {
		c := make(chan bool)
		for name := byte('a'); name < 'e'; name++ {
			go func() { <-c; act(name) }()
			time.Sleep(time.Millisecond) // they wait in this sequence, and pass no point after they are woken
		}
		close(c)
		time.Sleep(time.Millisecond)
	}))
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

// TestProcess checks the settings of the process, such as the number of processors and the limits of the garbage collector.
func TestProcess(t *testing.T) {
	see(t, fmt.Sprint("hash keys and first random numbers: ", keys))
	if runtime.NumCPU() != 4 || runtime.GOMAXPROCS(3) != 4 || runtime.GOMAXPROCS(0) != 3 {
		t.Error("the program does not see 4 processors, or cannot change the number")
	}
	if v, ok := os.LookupEnv("BRAID_ORDER"); ok {
		t.Error("a child process would inherit the order", v)
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
		t.Error("the wall clock has not advanced")
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
	late := time.NewTimer(time.Hour)
	time.Sleep(2 * time.Hour)
	select {
	case <-late.C:
	default:
		t.Error("a timer whose channel nobody has waited for has not fired")
	}
	// A program that polls does not stop time.
	var done atomic.Bool
	time.AfterFunc(10*time.Millisecond, func() { done.Store(true) })
	for !done.Load() {
	}
	polled := false
	time.AfterFunc(10*time.Millisecond, func() { polled = true })
	for !polled {
		runtime.Gosched()
	}
	for begin := time.Now(); time.Since(begin) < 10*time.Millisecond; {
	}
}

// TestNetworkTime has a deadline of package net that passes, and one before which an answer arrives.
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

// TestChild waits for a process, during which time is real.
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

// TestCall has short system calls, during which no other goroutine runs. The order would otherwise depend on the time that they take.
func TestCall(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, block := int(f.Fd()), make([]byte, 64<<10)
	alone(t, 2000, func() { _, _ = syscall.Pwrite(fd, block, 0) }) // about 20 µs
}

// TestUnorderedReturns returns from system calls without a P. At each moment, a goroutine that never waits is runnable or in a call.
func TestUnorderedReturns(t *testing.T) {
	if os.Getenv("UNORDERED") == "" {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const callers = 4
	var over atomic.Bool
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for !over.Load() {
				_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 100_000}, nil)
			}
		})
	}
	counts := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/not-in-go:goroutines"}}
	missed := 0
	for begun := time.Now(); time.Since(begun) < 5*time.Second; {
		runtime.Gosched()
		if metrics.Read(counts); counts[0].Value.Uint64()+counts[1].Value.Uint64() < callers {
			missed++
		}
	}
	over.Store(true)
	all.Wait()
	if missed != 0 {
		t.Errorf("%d times, a goroutine was neither runnable nor in a call", missed)
	}
}

// TestUnorderedCall has longer calls, of a guest of a simulation.
func TestUnorderedCall(t *testing.T) {
	if os.Getenv("UNORDERED") == "" {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	orders.set(1, 1)
	defer orders.end()
	f, err := os.Open("/dev/urandom")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block, over := make([]byte, 8<<20), make(chan bool)
	go func() {
		defer close(over)
		orders.begin(1)
		alone(t, 20, func() { _, _ = syscall.Read(int(f.Fd()), block) })
	}()
	<-over
}

//go:linkname orders runtime.orderWorld
var orders struct {
	set   func(run, draws uint64)
	begin func(id uint64)
	end   func()
}

// alone makes n system calls, during which no other goroutine runs.
func alone(t *testing.T, n int, call func()) {
	turns, over := beside()
	defer over()
	for range n {
		before := *turns
		call()
		if *turns != before {
			t.Error("another goroutine has run during a system call")
			return
		}
	}
}

// beside starts a goroutine that can always run, and counts how often it has run.
func beside() (turns *int, over func()) {
	turns, done := new(int), false
	go func() {
		for ; !done; *turns++ {
			runtime.Gosched()
		}
	}()
	runtime.Gosched()
	return turns, func() { done = true }
}

// TestPoll waits for the network while another goroutine computes. The network is polled only when no goroutine can run, because the order would
// otherwise depend on the time that the computation takes.
func TestPoll(t *testing.T) {
	client, server := tcp(t)
	got := false
	go func() {
		_, _ = server.Read(make([]byte, 1))
		got = true
	}()
	time.Sleep(time.Millisecond)
	_, _ = client.Write([]byte{1})
	for range 20 {
		compute()
		runtime.Gosched()
		if got {
			t.Fatal("the network was polled although a goroutine could run")
		}
	}
	time.Sleep(time.Second)
	if !got {
		t.Error("the network was not polled although no goroutine could run")
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
		compute()
		m.Unlock()
		m.Lock()
		runtime.Gosched() // the other goroutine was woken, and may find that the mutex is locked again
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

// TestBubble has a bubble that waits for a mutex of a goroutine outside: this is not a deadlock.
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

// TestUnordered runs without an order, as the guests of a simulation do by default: time advances although goroutines of a bubble wait for a mutex.
func TestUnordered(t *testing.T) {
	if os.Getenv("UNORDERED") == "" {
		return
	}
	synctest.Test(t, func(*testing.T) {
		var m sync.Mutex
		var rw sync.RWMutex
		for _, l := range []struct{ first, second sync.Locker }{{&m, &m}, {&rw, &rw}, {&rw, rw.RLocker()}} {
			l.first.Lock()
			time.AfterFunc(time.Hour, l.first.Unlock)
			l.second.Lock()
			l.second.Unlock()
		}
	})
}

// TestSpin waits in a loop without a point.
func TestSpin(t *testing.T) {
	var done uint32
	go func() { atomic.StoreUint32(&done, 1) }()
	for atomic.LoadUint32(&done) == 0 {
	}
}

// TestFair waits in a loop until select has chosen each of two ready cases, even if no switch is on.
func TestFair(t *testing.T) {
	a, b := make(chan int), make(chan int)
	close(a)
	close(b)
	for want := range 2 {
		for got := -1; got != want; {
			select {
			case <-a:
				got = 0
			case <-b:
				got = 1
			}
		}
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

//go:linkname nodeFiles syscall.nodeFiles
var nodeFiles struct {
	call func(trap uintptr, a *[6]uintptr, path, other string, data []byte, p any) (r uintptr, err syscall.Errno, done bool)
}

// TestFiles tests that the calls for files of a node reach the simulation: an openat is made by Syscall6, and a write by Syscall.
func TestFiles(t *testing.T) {
	name := t.TempDir() + "/f"
	real, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uintptr]string{}
	nodeFiles.call = func(trap uintptr, a *[6]uintptr, path, _ string, data []byte, _ any) (uintptr, syscall.Errno, bool) {
		if nodes.get() != 7 {
			return 0, 0, false // a close by the runtime's own goroutines
		}
		seen[trap] = path + string(data)
		switch trap {
		case syscall.SYS_OPENAT:
			return real.Fd(), 0, true
		case syscall.SYS_WRITE:
			return uintptr(len(data)), 0, true
		}
		return 0, 0, false
	}
	nodes.set(7)
	f, err := os.OpenFile("/nowhere", os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write([]byte("text"))
	}
	nodes.set(0)
	nodeFiles.call = nil
	got, _ := os.ReadFile(name)
	if err != nil || len(got) != 0 || seen[syscall.SYS_OPENAT] != "/nowhere" || seen[syscall.SYS_WRITE] != "text" {
		t.Fatal(err, string(got), seen)
	}
	runtime.KeepAlive(real)
}
