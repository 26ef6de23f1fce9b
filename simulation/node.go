package simulation

import (
	"context"
	"io/fs"
	"iter"
	"math"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/saturate"
	"github.com/braidgo/braid/simulation/internal/storage"
	"github.com/braidgo/braid/suspend"
)

// A Node is a host of the simulated network. It has a clock, ports and a disk, and its tasks crash together. A Node is a suspend.Spawner.
// In a task of the Node, suspend.Here returns the Node, and new tasks belong to the Node.
//
// The first Node of a World has the IP address 10.0.0.1, the second one 10.0.0.2, and so on; behind 10.0.0.250 comes 10.0.1.1. A Node whose name is
// an IP address has this address.
type Node struct {
	host
	ip       netip.Addr
	tcp, udp sockets
	inside   *Link          // the way between unix sockets, which has no faults
	paths    map[string]int // the ports of unix sockets by path
	conns    []connection
	disk     nodeDisk
	files    files
	boots    int                  // the number of crashes so far
	stops    []context.CancelFunc // these functions cancel the contexts of guests
	zombies  int                  // the number of calls by guests of an older boot
	off      bool                 // a PowerOff has crashed the node
	unheard  []connection         // connections whose peers have sent bytes while the node was off
}

// Node returns the node with this name. The first call creates the node, and later calls return the same Node. Outside the World, Node
// returns a node that does nothing. Node panics if the name is empty.
func (w *World) Node(name string) (n *Node) {
	if name == "" {
		panic("simulation: Node with an empty name")
	}
	w.do(func() {
		if n = w.nodes[name]; n != nil {
			return
		}
		n = newNode(w, name, len(w.hosts))
		if w.nodes == nil {
			w.nodes = map[string]*Node{}
		}
		w.nodes[name] = n
		w.hosts = append(w.hosts, &n.host)
		h, id := w.caller()
		w.note(event{kind: made, host: h, task: id, data: draws.HashString(0, name), text: name})
	})
	if n == nil {
		n = newNode(w, name, 0)
	}
	return n
}

func newNode(w *World, name string, index int) *Node {
	n := &Node{host: host{world: w, place: place{name, index}, rate: normal}, ip: addressOf(name, index)}
	n.spawner = n
	n.disk.KeepsNames = w.o.KeepsNames
	return n
}

// addressOf returns the IP address of the node with this name and this index in World.hosts.
func addressOf(name string, index int) netip.Addr {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap()
	}
	i := index - 1
	return netip.AddrFrom4([4]byte{10, byte(i / 250 / 250), byte(i / 250 % 250), byte(i%250 + 1)})
}

// nodeAt returns the node with an IP address, or nil if there is none.
func (w *World) nodeAt(address string) *Node {
	if a, err := netip.ParseAddr(address); err == nil {
		for _, h := range w.hosts[1:] {
			if n := h.spawner.(*Node); n.ip == a.Unmap() {
				return n
			}
		}
	}
	return nil
}

// A nodeDisk is the disk of a Node, with its faults.
type nodeDisk struct {
	storage.Disk
	slow time.Duration
	full bool
	rot  float64
}

// Name returns the name of n.
func (n *Node) Name() string { return n.name }

// Crash ends the node before it returns. A task that waits ends with runtime.Goexit at this wait, and any other task ends at its next wait.
// Deferred functions run, but the network and the disk refuse their calls. A deferred function may wait for other tasks of n; if none of
// these can run, its wait ends with runtime.Goexit, too. A task that waits for a cond.Cond must first lock the Cond's lock again: if a task
// elsewhere holds the lock, the deferred functions run when that task unlocks it. The peers of the node's connections fail with ECONNRESET.
// The node's timers do not fire. A suspend.Then with n as its executor ends its wait, and its callback is not called. So an actor of n that
// waits in a Next does not end, and others learn of the crash by their connections only. The disk keeps all synced state, and a part of the
// remaining state, which the seed chooses. The files of package os, see Host, stay as they are, and only a PowerOff loses what was not synced.
// If a task of n itself calls Crash, the call does not return. On a crashed node, Crash does nothing.
func (n *Node) Crash() {
	n.world.do(func() {
		n.crash()
		n.world.current.exitIfKilled()
	})
}

// PowerOff ends the node as Crash does, but the node's peers get no reset. Bytes to the node are lost, and after 15 minutes the peers'
// connections fail with ETIMEDOUT, as over TCP. A node that has restarted answers its peers with ECONNRESET. A Dial to the node waits for a
// restart, and fails with ETIMEDOUT after two minutes. The files of package os lose what was not synced, or a part of it, as the seed decides, also if
// the node has already crashed.
func (n *Node) PowerOff() {
	n.world.do(func() {
		if n.dead {
			n.files.powerOff(n)
		}
		n.off = n.off || !n.dead
		n.crash()
		n.world.current.exitIfKilled()
	})
}

func (n *Node) crash() {
	n.reboot = nil
	if n.dead {
		return
	}
	w := n.world
	h, id := w.caller()
	e := event{kind: crashed, host: h, task: id, of: &n.place}
	if n.off {
		e.n = 1
	}
	w.note(e)
	w.hit(n.name)
	w.band(w.clock.now, &n.place, nil, "paused", false)
	n.dead, n.paused = true, false // a paused task under a Shield must still run
	if w.guests == nil || !w.guests.kill(&n.host) {
		n.cancelGuests()
	}
	n.stops, n.zombies = nil, 0
	n.letGo()
	n.kill() // killed first, so that the end of a connection resumes no task of n
	var leaves []func()
	for f := n.crashes.Pop(); f != nil; f = n.crashes.Pop() {
		leaves = append(leaves, f.Value())
	}
	for _, leave := range leaves {
		leave()
	}
	w.clock.timers.drop(&n.host)
	w.watches.drop(&n.host)
	for _, s := range slices.Concat(n.tcp.all, n.udp.all) {
		s.shut()
	}
	for _, c := range slices.Clone(n.conns) {
		c.lose(n.off)
	}
	for _, l := range w.links.all { // n no longer repeats its segments on hold
		for way, end := range [2]string{l.ends.a, l.ends.b} {
			if n.off && end == n.name {
				l.wire.Drop(way)
			}
		}
	}
	n.boots++
	n.disk.Crash(&w.dice.disk)
	n.files.crash(n)
	endTasks(w, &n.host)
}

// cancelGuests cancels the contexts of the guests of this boot.
func (n *Node) cancelGuests() {
	for _, stop := range n.stops {
		stop()
	}
}

// Restart restarts the node with main as its first task. If the node has not crashed, Restart crashes the node first. If a task of n itself
// calls Restart, the task ends, as after a call of Crash, and main starts some steps later. If a deferred function calls Restart during a
// crash, main starts later, too.
func (n *Node) Restart(main func(ctx context.Context)) {
	if main == nil {
		panic("simulation: Restart with a nil function")
	}
	w := n.world
	w.do(func() {
		n.crash()
		if w.running(func(t *task) bool { return t.host == &n.host }) {
			_ = w.Execute(func() { n.Restart(main) })
		} else {
			n.boot(func() { _ = n.Go(func() { main(context.Background()) }) })
		}
		w.current.exitIfKilled()
	})
}

// boot restarts a crashed node, and calls main.
func (n *Node) boot(main func()) {
	w := n.world
	endTasks(w, &n.host)        // a task of n that has called Crash may wait in a deferred function
	if n.tasks.First() != nil { // deferred functions of a task under a Shield must not run in the new boot
		n.reboot = func() { n.boot(main) }
		return
	}
	h, id := w.caller()
	w.note(event{kind: restarted, host: h, task: id, of: &n.place})
	n.dead, n.paused, n.off = false, false, false
	for _, c := range n.unheard {
		c.reset()
	}
	n.unheard = nil
	main()
}

// late counts a call by a guest of an older boot, and ends the guest after 2000 such calls.
func (n *Node) late(boot int) {
	if n.world.guests != nil && (n.dead || n.boots != boot) {
		n.world.by.late(&n.zombies)
	}
}

// Crashed reports whether n has crashed and has not been restarted.
func (n *Node) Crashed() (dead bool) {
	n.world.do(func() { dead = n.dead })
	return dead
}

// Pause stops the tasks and timers of n until Resume, like a long garbage collection or a stopped virtual machine. The network still
// delivers bytes to n, which n can read after Resume.
func (n *Node) Pause() {
	n.world.do(func() {
		n.paused = true
		n.world.band(n.world.clock.now, &n.place, nil, "paused", true)
	})
}

// Resume ends a Pause.
func (n *Node) Resume() {
	n.world.do(func() {
		if n.paused {
			n.paused = false
			n.world.band(n.world.clock.now, &n.place, nil, "paused", false)
			n.world.ready = append(n.world.ready, n.held...)
			n.held = nil
		}
	})
}

// SlowDisk makes each Sync of the disk take up to d longer. If d is 0, a Sync takes only as long as Faults.MaxSync says.
func (n *Node) SlowDisk(d time.Duration) {
	n.world.do(func() {
		n.disk.slow = max(d, 0)
		n.world.band(n.world.clock.now, &n.place, nil, "slow disk", d > 0)
	})
}

// RotDisk sets the probability p that a sector of 512 bytes has rotted when it is read. Rot changes one bit of the sector permanently. No
// error reports the change, so a program must detect it with checksums.
func (n *Node) RotDisk(p float64) {
	n.world.do(func() {
		n.disk.rot = p
		n.world.band(n.world.clock.now, &n.place, nil, "rotting disk", p > 0)
	})
}

// FullDisk sets whether n's disk is full. On a full disk, a Create fails with ENOSPC, and so does a write that needs another sector of 512
// bytes. The part of the write that fits into the last sector of the file is written.
func (n *Node) FullDisk(full bool) {
	n.world.do(func() {
		n.disk.full = full
		n.world.band(n.world.clock.now, &n.place, nil, "full disk", full)
	})
}

// Skew sets n's clock to the World's time plus offset. From then on the clock runs rate times as fast as the World's clock. The rate must
// be above 0 and below 2³¹, and is rounded to 32 bits after the binary point. Skew does not move timers that are already set.
func (n *Node) Skew(offset time.Duration, rate float64) {
	if !(rate > 0 && rate < 1<<31) {
		panic("simulation: Skew with a rate that is not positive, or too large")
	}
	n.world.do(func() {
		n.since, n.offset, n.rate = n.world.clock.now, offset, max(1, uint64(math.Round(rate*normal)))
		n.world.band(n.world.clock.now, &n.place, nil, "wrong clock", offset != 0 || rate != 1)
	})
}

// diskReady begins an operation on the disk, and returns an error if n has crashed since the given boot. The event of the operation
// contains data, a hash of the bytes.
func (n *Node) diskReady(op, name string, boot int, data uint64) error {
	w := n.world
	switch {
	case !tasks{w}.beginCall():
		return ErrForeign
	case n.dead || boot != n.boots:
		return os.ErrClosed
	}
	h, id := w.caller()
	w.note(event{kind: wrote, host: h, task: id, of: &n.place, data: draws.HashString(data, name), text: op + " " + name})
	return nil
}

// slowly waits for the duration of a sync, and returns an error if the sync must fail.
func (n *Node) slowly(op, name string) error {
	boot := n.boots
	if d := saturate.Plus(n.world.links.faults.MaxSync, n.disk.slow); d > 0 {
		_ = suspend.Sleep(context.Background(), n.world.dice.disk.UpTo(d))
	} else if suspend.Current() != nil {
		suspend.Yield()
	}
	switch {
	case n.dead || boot != n.boots:
		return pathError(op, name, os.ErrClosed)
	case n.world.dice.disk.Chance(n.world.links.faults.Sync) && n.world.record.Comes("sync"):
		return pathError(op, name, syscall.EIO)
	}
	return nil
}

// rotten calls yield with a byte of each sector between off and end that rots now. It skips a file with unsynced writes, whose bytes are read
// from memory.
func (n *Node) rotten(f *storage.File, off, end int64) iter.Seq[int64] {
	w := n.world
	return func(yield func(at int64) bool) {
		if n.disk.rot == 0 || !f.IsSynced() {
			return
		}
		for at := off - off%storage.Sector; at < end; at += storage.Sector {
			if w.dice.disk.Chance(n.disk.rot) && w.record.Comes("rot") && !yield(at+int64(w.dice.disk.Below(int(min(storage.Sector, f.Size()-at))))) {
				return
			}
		}
	}
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }
