package netstack

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// WireOptions configure Pair. The zero value is a wire without loss and without delay.
type WireOptions struct {
	Loss, Duplicate, Reorder float64       // probabilities from 0 to 1; a reordered packet arrives later by Delay plus 1 ms
	Delay, Jitter            time.Duration // each packet takes Delay plus at most Jitter; Jitter does not reorder packets
	Bandwidth                int           // bytes/s in each direction, zero means no limit; packets that would wait over 250 ms are lost
	MTU                      int           // zero means 1500
	Seed                     uint64        // random seed; the nth packet of a direction has the same fate for the same seed
}

// maxBacklog is the maximum time for which a packet may wait for bandwidth.
const maxBacklog = 250 * time.Millisecond

// Pair returns the two ends of a wire in memory.
func Pair(o WireOptions) (a, b stack.LinkEndpoint) {
	if o.MTU == 0 {
		o.MTU = 1500
	}
	end := func(stream uint64) *wireEnd {
		ep := channel.New(0, uint32(o.MTU), "")
		// The wire does not corrupt packets, so the stacks need no checksums.
		ep.LinkEPCapabilities = stack.CapabilityRXChecksumOffload | stack.CapabilityTXChecksumOffload
		return &wireEnd{Endpoint: ep, o: o, chance: rand.New(rand.NewPCG(o.Seed, stream))}
	}
	x, y := end(0), end(1)
	x.peer, y.peer = y, x
	return x, y
}

// A wireEnd is one end of a wire. It holds the packets that it has sent but that have not arrived.
type wireEnd struct {
	*channel.Endpoint
	peer *wireEnd
	o    WireOptions

	mu      sync.Mutex // never held during a call into gVisor
	chance  *rand.Rand
	free    time.Time // when the bandwidth is free for the next packet
	last    time.Time // arrival time of the last packet that was not reordered
	flying  flight
	number  uint64
	timer   *time.Timer // calls w.land when the first packet in w.flying is due
	landing bool        // a goroutine is delivering packets; a second one would reorder them
	closed  bool
}

// A flyer is a packet that was sent but has not arrived.
type flyer struct {
	at     time.Time
	number uint64 // breaks ties between packets with the same arrival time
	proto  tcpip.NetworkProtocolNumber
	bytes  buffer.Buffer
}

// WritePackets implements stack.LinkWriter. WritePackets never fails, and never waits.
func (w *wireEnd) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for _, p := range packets.AsSlice() {
		for range w.copies() {
			w.launch(flyer{proto: p.NetworkProtocolNumber, bytes: p.ToBuffer()})
		}
	}
	return packets.Len(), nil
}

// copies chooses at random how many copies of a packet are sent: 0, 1 or 2.
func (w *wireEnd) copies() int {
	if w.o.Loss == 0 && w.o.Duplicate == 0 {
		return 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	lost, twice := w.chance.Float64() < w.o.Loss, w.chance.Float64() < w.o.Duplicate
	switch {
	case lost:
		return 0
	case twice:
		return 2
	}
	return 1
}

// launch adds f to the packets in flight, or drops f. launch must not deliver f itself, because the sender holds locks
// of its endpoint that an ICMP reply would acquire again.
func (w *wireEnd) launch(f flyer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	f.at = now.Add(w.o.Delay + time.Duration(w.chance.Float64()*float64(w.o.Jitter)))
	if w.o.Bandwidth > 0 {
		if w.free.Before(now) {
			w.free = now
		}
		if wait := w.free.Sub(now); wait <= maxBacklog {
			w.free = w.free.Add(time.Duration(float64(f.bytes.Size()) / float64(w.o.Bandwidth) * float64(time.Second)))
			f.at = f.at.Add(w.free.Sub(now))
		} else {
			f.bytes.Release()
			return
		}
	}
	if w.chance.Float64() < w.o.Reorder {
		f.at = f.at.Add(w.o.Delay + time.Millisecond)
	} else if f.at.Before(w.last) {
		f.at = w.last
	} else {
		w.last = f.at
	}
	if w.closed {
		f.bytes.Release()
		return
	}
	f.number = w.number
	w.number++
	heap.Push(&w.flying, f)
	if !w.landing && w.flying[0].number == f.number {
		w.wakeLocked()
	}
}

// wakeLocked makes a goroutine or the timer call land when the first packet in flight is due. The caller must hold w.mu.
func (w *wireEnd) wakeLocked() {
	left := time.Until(w.flying[0].at)
	switch {
	case left <= 0: // a timer would often be late by a millisecond, because the runtime rounds up short waits of idle threads
		go w.land()
	case w.timer == nil:
		w.timer = time.AfterFunc(left, w.land)
	default:
		w.timer.Reset(left)
	}
}

// land delivers the packets that are due, in order. land runs on a goroutine, or is called by the timer.
func (w *wireEnd) land() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.landing {
		return
	}
	w.landing = true
	for len(w.flying) > 0 && time.Until(w.flying[0].at) <= 0 {
		f := heap.Pop(&w.flying).(flyer)
		w.mu.Unlock()
		w.arrive(f)
		w.mu.Lock()
	}
	w.landing = false
	if len(w.flying) > 0 {
		w.wakeLocked()
	}
}

// arrive hands f to the stack at the other end. The caller must not hold w.mu.
func (w *wireEnd) arrive(f flyer) {
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: f.bytes})
	w.peer.InjectInbound(f.proto, p)
	p.DecRef()
}

// Close implements stack.LinkEndpoint. Packets in flight are lost.
func (w *wireEnd) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, f := range w.flying {
		f.bytes.Release()
	}
	w.flying = nil
	if w.timer != nil {
		w.timer.Stop()
	}
}

// A flight is a heap of packets, ordered by arrival time.
type flight []flyer

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	return f[i].at.Before(f[j].at) || f[i].at.Equal(f[j].at) && f[i].number < f[j].number
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(flyer)) }
func (f *flight) Pop() any {
	old := *f
	last := old[len(old)-1]
	old[len(old)-1] = flyer{}
	*f = old[:len(old)-1]
	return last
}
