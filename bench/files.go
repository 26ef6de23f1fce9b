package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// This file contains the rows and curves for pipes and files.

const (
	block     = 4096
	busyPairs = 128
	burst     = 32 << 10
	wantIdle  = 65_536
)

// idlePipes is the number of idle pipes. If the limit of file descriptors does not permit wantIdle pipes, the number is smaller, and
// idleID, the id of the row, contains the number.
var idlePipes, idleID = func() (int, string) {
	const others = 8*busyPairs + 500
	limit := allowDescriptors(wantIdle + others)
	if limit == wantIdle+others {
		return wantIdle, "idle-pipes"
	}
	n := max(0, (limit-others)/1000*1000)
	return n, fmt.Sprintf("idle-pipes/%d", n)
}()

// pipes is a set of pipes with buffers of 4 KB, as in Li and Zdancewic (2007). Two pipes connect a pair of tasks or goroutines. An idle
// pipe has one task or goroutine that waits to read. It is a FIFO that is open for reading and writing, so that it has a single descriptor.
type pipes struct {
	begin func(f func())
	adopt func(f *os.File) io.ReadWriter
	pairs [busyPairs]*chanx.Chan[int] // each receives the number of bursts to send
	ended *latch.Latch
}

// loopPipes returns pipes of an event loop, and osPipes returns pipes of goroutines. Both ends of a pipe are on the reactor of the task
// that opens it.
func loopPipes(b *bench, loops int) *pipes {
	loop := b.loop(eventloop.Options{Loops: loops})
	return newPipes(b, func(f func()) { ok(loop.Go(f)) }, func(f *os.File) io.ReadWriter { return must(loop.Adopt(f)) })
}

func osPipes(b *bench) *pipes {
	var all sync.WaitGroup
	b.close(all.Wait)
	return newPipes(b, func(f func()) { all.Go(f) }, func(f *os.File) io.ReadWriter {
		b.close(func() { f.Close() })
		return f
	})
}

// newPipes opens the busy pairs. All sides must open their busy pairs before any idle pipes, because the system may give smaller buffers to
// users with many pipes.
func newPipes(b *bench, begin func(f func()), adopt func(f *os.File) io.ReadWriter) *pipes {
	p := &pipes{begin: begin, adopt: adopt}
	for i := range p.pairs {
		p.pairs[i] = chanx.New[int](0)
		opened := make(chan struct{})
		begin(func() { p.pair(p.pairs[i], opened) })
		<-opened
		b.close(func() { ok(p.pairs[i].Close()) })
	}
	return p
}

// pair runs the first task or goroutine of a pair. It opens both pipes, and starts its partner on the same scheduler.
func (p *pipes) pair(bursts *chanx.Chan[int], opened chan struct{}) {
	r1, w1 := openPipe()
	r2, w2 := openPipe()
	from, to, back, answer := p.adopt(r1), p.adopt(w1), p.adopt(r2), p.adopt(w2)
	close(opened)
	for {
		n, err := bursts.Recv(bg)
		if err != nil {
			return
		}
		ok(suspend.Here().Go(func() {
			buf := make([]byte, burst)
			for range n {
				must(io.ReadFull(from, buf))
				must(answer.Write(buf))
			}
		}))
		buf := make([]byte, burst)
		for range n {
			must(to.Write(buf))
			must(io.ReadFull(back, buf))
		}
		p.ended.CountDown()
	}
}

// idle adds n idle pipes, and returns when their readers are waiting.
func (p *pipes) idle(n int) *pipes {
	for range n {
		f := p.adopt(openFIFO())
		p.begin(func() { _, _ = f.Read(make([]byte, 1)) }) // blocks until the pipe is closed
	}
	waiting := make(chan struct{})
	p.begin(func() { close(waiting) }) // runs after all readers have started
	<-waiting
	return p
}

// transfer sends n bursts of 32 KB to the partners and back. The bursts are divided among all pairs.
func (p *pipes) transfer(n int) {
	p.ended = latch.New(busyPairs)
	for i, pair := range p.pairs {
		ok(pair.Send(bg, (n+i)/busyPairs))
	}
	ok(p.ended.Wait(bg))
}

func besideIdle(b *bench) (ours, peer side) {
	o, p := loopPipes(b, 1), loopPipes(b, 1)
	o.idle(b.of(idlePipes, 10))
	return b.works(o.transfer, p.transfer, 1)
}

func idlePoints() (all []float64) {
	for _, n := range []int{0, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, idlePipes} {
		if n < idlePipes || n == idlePipes && n < wantIdle {
			all = append(all, float64(n))
		}
	}
	return all
}

// amongIdle measures the throughput in MB per second, in both directions together. The time to open new pipes in each round is not counted.
func amongIdle(b *bench, x float64) (all []side) {
	if idlePipes < wantIdle {
		b.note(fmt.Sprintf("The limit of descriptors on this machine allows %d idle pipes, not %d.", idlePipes, wantIdle))
	}
	d := time.Duration(b.of(int(150*time.Millisecond), int(time.Millisecond)))
	for _, procs := range []int{runtime.NumCPU(), 1} {
		for _, open := range []func(b *bench) *pipes{func(b *bench) *pipes { return loopPipes(b, procs) }, osPipes} {
			all = append(all, func() float64 {
				round := &bench{mode: b.mode}
				defer round.end()
				s := wall.of(onProcs(procs, open(round).idle(int(x)).transfer), 1, d)
				s() // chooses the number of bursts, and warms up
				return 2 * burst / s() * 1e3
			})
		}
	}
	return all
}

// A disk is a file for random reads, which bypass the system's cache if the file system permits it. The file has no name, so that it
// disappears when the program ends.
type disk struct {
	*os.File
	flags, blocks int
}

var theDisk disk

// disk returns the disk, which it creates once.
func (b *bench) disk() disk {
	if theDisk.File != nil {
		return theDisk
	}
	size, part := b.of(1<<30, 1<<20), make([]byte, 1<<20)
	f := must(os.CreateTemp(".", ".disk-*"))
	defer os.Remove(f.Name())
	rng := rand.NewChaCha8([32]byte{})
	for range size / len(part) {
		_, _ = rng.Read(part)
		must(f.Write(part))
	}
	ok(f.Sync())
	theDisk = disk{f, 0, size / block}
	if direct, err := os.OpenFile(f.Name(), os.O_RDONLY|openDirect, 0); err == nil && openDirect != 0 {
		if _, err := direct.ReadAt(aligned(), 0); err == nil {
			f.Close()
			theDisk.File, theDisk.flags = direct, openDirect
		}
	}
	return theDisk
}

// aligned returns a buffer of one block. The address of the buffer is a multiple of its size, as O_DIRECT requires.
func aligned() []byte {
	b := make([]byte, 2*block)
	off := block - int(uintptr(unsafe.Pointer(&b[0]))%block)
	return b[off : off+block]
}

// reader returns a function that reads a random block of f into buf.
func (d disk) reader(f io.ReaderAt) func(buf []byte) {
	return func(buf []byte) { must(f.ReadAt(buf, int64(rand.IntN(d.blocks))*block)) }
}

// reading measures the throughput of n readers in MB per second. The readers are goroutines, or tasks of an event loop with a reactor for each
// processor, which use a File of the loop, or suspend.Blocking with a limited width.
func reading(b *bench, x float64) (all []side) {
	n, f := int(x), b.disk()
	read, d := f.reader(f.File), time.Duration(b.of(300, 1))*time.Millisecond
	if f.flags == 0 {
		b.note("This file system has no O_DIRECT: the reads come from the cache of the system, so the curves show what the two add to such a read.")
	}
	for _, width := range []int{0, 64, 1024} {
		all = append(all, func() float64 {
			round := new(bench)
			defer round.end()
			loop := round.loop(eventloop.Options{Loops: runtime.NumCPU(), BlockingWidth: width})
			way := func(buf []byte) { ok(suspend.Blocking(bg, func() { read(buf) })) }
			if width == 0 {
				own := must(loop.OpenFile(fmt.Sprintf("/dev/fd/%d", f.Fd()), os.O_RDONLY|f.flags, 0))
				defer own.Close()
				way = f.reader(own)
			}
			return readers(n, d, way, func(reader func()) { ok(loop.Go(reader)) })
		})
	}
	if n > 8000 {
		b.note("More than 8000 goroutines are not tried: each may need a thread, and a Go program ends at 10,000.")
		return append(all, nil)
	}
	return append(all, func() float64 { return readers(n, d, read, func(reader func()) { go reader() }) })
}

// readers starts n readers, and returns their throughput over the duration d. The duration begins when each reader has read one block.
func readers(n int, d time.Duration, read func(buf []byte), begin func(reader func())) float64 {
	ready, ended := latch.New(n), latch.New(n)
	var blocks atomic.Int64
	var counting, over atomic.Bool
	for range n {
		begin(func() {
			buf, mine := aligned(), int64(0)
			read(buf)
			ready.CountDown()
			for !over.Load() {
				read(buf)
				if counting.Load() {
					mine++
				}
			}
			blocks.Add(mine)
			ended.CountDown()
		})
	}
	ok(ready.Wait(bg))
	counting.Store(true)
	start := time.Now()
	time.Sleep(d)
	counting.Store(false)
	took := time.Since(start)
	over.Store(true)
	ok(ended.Wait(bg))
	return float64(blocks.Load()) * block / 1e6 / took.Seconds()
}
