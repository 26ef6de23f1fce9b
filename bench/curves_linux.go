package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

var systemCurves = []curve{diskReads, idleCurve, fibLoad, fibWorkers}

// availableMemory is the memory that the system could give to this process, in bytes. 0 means unknown.
func availableMemory() uint64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "MemAvailable:" {
			kb, _ := strconv.ParseUint(string(f[1]), 10, 64)
			return kb << 10
		}
	}
	return 0
}

const block = 4096

// diskFile is read at random: a gigabyte, past the cache of the system if its file system allows that. It is made
// once, and has no name.
var diskFile = sync.OnceValues(func() (f disk, err error) {
	return newDisk(1 << 30)
})

type disk struct {
	*os.File
	blocks int
	note   string
}

func newDisk(size int) (d disk, err error) {
	f, err := os.CreateTemp(".", ".disk-*")
	if err != nil {
		return d, err
	}
	defer os.Remove(f.Name())
	part := make([]byte, min(size, 1<<20))
	rng := rand.NewChaCha8([32]byte{})
	for range size / len(part) {
		_, _ = rng.Read(part)
		if _, err := f.Write(part); err != nil {
			return d, errors.Join(err, f.Close())
		}
	}
	if err := f.Sync(); err != nil {
		return d, errors.Join(err, f.Close())
	}
	d = disk{File: f, blocks: size / block, note: "The reads bypass the cache of the system (O_DIRECT)."}
	if direct, err := os.OpenFile(f.Name(), os.O_RDONLY|syscall.O_DIRECT, 0); err == nil {
		if _, err := direct.ReadAt(aligned(), 0); err == nil {
			d.File = direct
			return d, f.Close()
		}
		direct.Close()
	}
	d.note = "This file system has no O_DIRECT: the reads come from the cache of the system, so what is compared is what the two add to them."
	return d, nil
}

// aligned is a buffer of a block that begins at a multiple of its size, as O_DIRECT demands.
func aligned() []byte {
	b := make([]byte, 2*block)
	off := block - int(uintptr(unsafe.Pointer(&b[0]))%block)
	return b[off : off+block]
}

// read is one of a random block.
func (d disk) read(buf []byte) {
	must(d.ReadAt(buf, int64(rand.IntN(d.blocks))*block))
}

var diskReads = curve{
	id: "disk-reads", title: "Random reads of 4 KB from a file of 1 GB",
	about:   "Each thread reads one block after the other, at random, for a third of a second: tasks of an event loop through suspend.Blocking, of which a limited number runs at a time, and goroutines. Counted is from when each has read one.",
	x:       axis{label: "threads", log: true},
	figures: []figure{{name: "throughput", label: "MB per second"}},
	series:  []string{"event loop, BlockingWidth 64", "event loop, BlockingWidth 1024", "goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{1, 4}
		}
		return []float64{1, 8, 64, 512, 4096, 16_384}
	},
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		file := diskFile
		if m.Tiny {
			file = func() (disk, error) { return newDisk(1 << 20) }
		}
		f, err := file()
		if err != nil {
			return nil, err
		}
		d := time.Duration(m.of(300, 1)) * time.Millisecond
		onLoop := func(width int) measurement {
			return func() ([]float64, error) {
				loop, err := eventloop.New(eventloop.Options{BlockingWidth: width})
				if err != nil {
					return nil, err
				}
				v := f.readers(n, d, func(reader func(func([]byte))) {
					must(0, loop.Go(func() {
						reader(func(buf []byte) { must(0, suspend.Blocking(context.Background(), func() { f.read(buf) })) })
					}))
				})
				return v, loop.Close()
			}
		}
		s := &station{notes: []string{f.note}}
		s.sides = []measurement{onLoop(64), onLoop(1024), func() ([]float64, error) {
			return f.readers(n, d, func(reader func(func([]byte))) { go reader(f.read) }), nil
		}}
		if n > 8000 {
			s.sides[2] = nil
			s.notes = append(s.notes, "More than 8000 goroutines are not tried: each may need a thread, and a Go program ends at 10,000.")
		}
		if m.Tiny {
			s.close = func() { f.Close() }
		}
		return s, nil
	},
}

// readers has n read, and returns the throughput of the reads that end in a time of d after each has read once.
func (f disk) readers(n int, d time.Duration, begin func(reader func(read func([]byte)))) []float64 {
	ready, ended := latch.New(n), latch.New(n)
	var blocks atomic.Int64
	var counting, over atomic.Bool
	bg := context.Background()
	for range n {
		begin(func(read func([]byte)) {
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
	must(0, ready.Wait(bg))
	counting.Store(true)
	start := time.Now()
	time.Sleep(d)
	counting.Store(false)
	took := time.Since(start)
	over.Store(true)
	must(0, ended.Wait(bg))
	return []float64{float64(blocks.Load()) * block / 1e6 / took.Seconds()}
}

var idleCurve = curve{
	id: "pipes", title: "128 busy pipes among n idle ones",
	about:   "4 KB at a time, a thread at each end of a busy pipe and one that waits to read from each idle one. Opening is not counted; each round opens its own.",
	x:       axis{label: "idle pipes"},
	figures: []figure{{name: "throughput", label: "MB per second"}},
	series:  []string{"event loop", "os.Pipe, goroutines"},
	rounds:  5, cold: true,
	points: func(m mode) (all []float64) {
		if m.Tiny {
			return []float64{0, 10}
		}
		for _, n := range []int{0, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000} {
			if n < idlePairs {
				all = append(all, float64(n))
			}
		}
		if idlePairs < wantIdle {
			all = append(all, float64(idlePairs))
		}
		return all
	},
	open: func(m mode, x float64) (*station, error) {
		d := time.Duration(m.of(int(150*time.Millisecond), int(time.Millisecond)))
		rate := func(s side) ([]float64, error) {
			if _, err := s(d); err != nil { // finds out how many, and warms up
				return nil, err
			}
			each, err := s(d)
			return []float64{block / each * 1e3}, err
		}
		s := &station{sides: []measurement{
			func() (v []float64, err error) {
				p, err := newPipes()
				if err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, p.loop.Close()) }()
				if err := p.idle(int(x)); err != nil {
					return nil, err
				}
				return rate(timed(p.transfer))
			},
			func() ([]float64, error) {
				p, err := newStdPipes(int(x))
				if err != nil {
					return nil, err
				}
				defer p.close()
				return rate(timed(p.transfer))
			},
		}}
		if idlePairs < wantIdle {
			s.notes = append(s.notes, fmt.Sprintf("%d idle pipes, and not %d, are allowed by the limit of descriptors here.", idlePairs, wantIdle))
		}
		return s, nil
	},
}

type stdPipes struct {
	r, w    []*os.File
	waiting sync.WaitGroup
}

func newStdPipes(idle int) (*stdPipes, error) {
	p := &stdPipes{}
	for range busyPipes + idle {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, err
		}
		p.r, p.w = append(p.r, r), append(p.w, w)
	}
	for _, r := range p.r[busyPipes:] {
		p.waiting.Go(func() { _, _ = r.Read(make([]byte, 1)) })
	}
	return p, nil
}

func (p *stdPipes) close() {
	for i := range p.r {
		p.w[i].Close()
		p.r[i].Close()
	}
	p.waiting.Wait()
}

func (p *stdPipes) transfer(n int) {
	var all sync.WaitGroup
	for i := range busyPipes {
		mine := (n + i) / busyPipes
		all.Go(func() {
			buf := make([]byte, block)
			for range mine {
				must(p.w[i].Write(buf))
			}
		})
		all.Go(func() {
			buf := make([]byte, block)
			for range mine {
				must(io.ReadFull(p.r[i], buf))
			}
		})
	}
	all.Wait()
}
