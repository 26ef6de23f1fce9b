package simulation

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"
)

// A Node is a host of the simulated network: its tasks crash together, and it has a clock, ports and a disk. It is a
// suspend.Spawner: suspend.Here returns it in its tasks, and the tasks that they start belong to it.
type Node struct {
	host
	ports    map[int]*Listener // listeners by port
	bound    []*Listener
	lastPort int
	sockets  map[int]*PacketConn // sockets by port
	opened   []*PacketConn
	conns    []*Conn
	files    diskState
	stops    []context.CancelFunc // these cancel the contexts of guests
	zombies  int                  // calls of guests of an older boot
	off      bool                 // dead by PowerOff
	unheard  []*Conn              // connections that got bytes while n was off
}

// Node returns the node with this name, the same each time. Outside the World it returns a node that does nothing. It panics for
// the empty name.
func (w *World) Node(name string) (n *Node) {
	if name == "" {
		panic("simulation: a Node without a name")
	}
	w.do(func() { n = w.node(name) })
	if n == nil {
		n = &Node{host: host{world: w, name: name, rate: normal}}
		n.spawner = n
	}
	return n
}

func (w *World) node(name string) *Node {
	if n := w.nodes[name]; n != nil {
		return n
	}
	n := &Node{host: host{world: w, name: name, index: len(w.hosts), rate: normal}, ports: map[int]*Listener{}, lastPort: 49151}
	n.spawner = n
	if w.nodes == nil {
		w.nodes = map[string]*Node{}
	}
	w.nodes[name] = n
	w.hosts = append(w.hosts, &n.host)
	h, id := w.caller()
	w.note(event{kind: made, host: h, task: id, data: hashString(0, name), text: name})
	return n
}

// Name returns the name.
func (n *Node) Name() string { return n.name }

// World returns the World that n belongs to.
func (n *Node) World() *World { return n.world }

// Crash ends the node, before it returns. Its tasks end by runtime.Goexit where they wait, or where they wait next if they were resumed
// already. Their defers run, but the network and the disk refuse them. A defer may wait for other tasks of n; if none of them can go on,
// its wait ends by runtime.Goexit, too. Only a cond.Cond waits for its lock until it has it: if a task elsewhere holds the lock, the defers
// of the waiter run when that unlocks. The peers of the node's connections fail with ECONNRESET. Its timers do not fire. The disk keeps all
// that was synced, and of the rest a part that the seed decides. If a task of n itself calls Crash, the call does not return. On a crashed
// node Crash does nothing.
func (n *Node) Crash() {
	n.world.do(func() {
		n.crash()
		n.world.exitIfKilled()
	})
}

// PowerOff ends the node as Crash does, but its peers get no reset. Their bytes are lost, and after 15 minutes the connections fail with
// ETIMEDOUT, as over TCP. Once the node has restarted, it answers with ECONNRESET. A Dial to it waits for the restart, or fails with
// ETIMEDOUT after two minutes.
func (n *Node) PowerOff() {
	n.world.do(func() {
		n.off = n.off || !n.dead
		n.crash()
		n.world.exitIfKilled()
	})
}

// exitIfKilled ends the calling task if a Crash that it was in has ended its node.
func (w *World) exitIfKilled() {
	if t := w.current; t != nil {
		t.ExitIfKilled()
	}
}

func (n *Node) crash() {
	n.reboot = nil
	if n.dead {
		return
	}
	w := n.world
	h, id := w.caller()
	e := event{kind: crashed, host: h, task: id, of: &n.host}
	if n.off {
		e.n = 1
	}
	w.note(e)
	n.world.band(&n.host, nil, "paused", false)
	n.dead, n.paused = true, false // a task under a Shield still has to run
	for _, stop := range n.stops {
		stop()
	}
	n.stops, n.zombies = nil, 0
	n.letGo()
	w.kill(&n.host) // first, so that the end of a connection resumes no task of n
	w.timers.drop(&n.host)
	w.unwatch(&n.host)
	for _, l := range slices.Clone(n.bound) {
		l.shut()
	}
	for _, c := range slices.Clone(n.opened) {
		c.shut()
	}
	for _, c := range slices.Clone(n.conns) {
		if c.unplugged = n.off; n.off {
			w.discard(c.held)
			c.held = nil
			if len(c.peer.write.line) > 0 {
				c.peer.probe()
			}
		}
		c.abort()
	}
	if n.off {
		w.unsend(n)
	}
	n.files.crash(n)
	w.endTasks(&n.host)
}

// Restart begins the node again with main as its first task. A node that has not crashed crashes first. A task of n itself
// that calls Restart ends as by Crash, and main begins some steps later. In a defer of a crash, too, main begins later.
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
		w.exitIfKilled()
	})
}

// boot begins a node that has crashed again, and calls main.
func (n *Node) boot(main func()) {
	w := n.world
	w.endTasks(&n.host)         // a task of n that has called Crash may wait in a defer
	if n.tasks.First() != nil { // a task is under a Shield: its defers must not run in the new boot
		n.reboot = func() { n.boot(main) }
		return
	}
	h, id := w.caller()
	w.note(event{kind: restarted, host: h, task: id, of: &n.host})
	n.dead, n.paused, n.off = false, false, false
	for _, c := range n.unheard {
		c.reset()
	}
	n.unheard = nil
	main()
}

// late notes a call of a guest of an older boot, which ends the guest after many.
func (n *Node) late(boot int) {
	if n.world.calling() != nil && (n.dead || n.files.boot != boot) {
		if n.zombies++; n.zombies > 2000 {
			runtime.Goexit()
		}
	}
}

// Crashed reports whether n has crashed and not been restarted.
func (n *Node) Crashed() (dead bool) {
	n.world.do(func() { dead = n.dead })
	return dead
}

// Pause stops the tasks and timers of n until Resume, as a long collection or a stopped virtual machine does. Its network
// goes on: what arrives waits to be read.
func (n *Node) Pause() {
	n.world.do(func() {
		n.paused = true
		n.world.band(&n.host, nil, "paused", true)
	})
}

// Resume ends a Pause.
func (n *Node) Resume() {
	n.world.do(func() {
		if n.paused {
			n.paused = false
			n.world.band(&n.host, nil, "paused", false)
			n.world.ready = append(n.world.ready, n.held...)
			n.held = nil
		}
	})
}

// SlowDisk makes each Sync of the disk take up to d longer. 0 means only as long as Faults.MaxSync says.
func (n *Node) SlowDisk(d time.Duration) {
	n.world.do(func() {
		n.files.slow = max(d, 0)
		n.world.band(&n.host, nil, "slow disk", d > 0)
	})
}

// RotDisk gives each sector of 512 bytes the probability p to have rotted when it is read: a bit of it is changed for good. No error
// reports it, so a program must check with checksums.
func (n *Node) RotDisk(p float64) {
	n.world.do(func() {
		n.files.rot = p
		n.world.band(&n.host, nil, "rotting disk", p > 0)
	})
}

// FullDisk says whether the disk of n is full. A Create, and a write that makes a file longer, then fails with ENOSPC.
func (n *Node) FullDisk(full bool) {
	n.world.do(func() {
		n.files.full = full
		n.world.band(&n.host, nil, "full disk", full)
	})
}

// Skew sets the clock of n: offset ahead of the World's now, and rate times as fast from then on, to 32 bits after the
// point. rate is above 0 and below 2³¹. Timers that are set already keep their moment.
func (n *Node) Skew(offset time.Duration, rate float64) {
	if !(rate > 0 && rate < 1<<31) {
		panic("simulation: Skew with a rate that is not positive, or too large")
	}
	n.world.do(func() {
		n.since, n.offset, n.rate = n.world.now, offset, max(1, uint64(math.Round(rate*normal)))
		n.world.band(&n.host, nil, "wrong clock", offset != 0 || rate != 1)
	})
}

// drop takes out the timers of h.
func (s *timers) drop(h *host) {
	s.heap = slices.DeleteFunc(s.heap, func(t *timer) bool {
		if t.host == h {
			t.pos = -1
		}
		return t.host == h
	})
	slices.SortFunc(s.heap, func(t, u *timer) int {
		if t.before(u) {
			return -1
		}
		return 1
	})
	for i, t := range s.heap {
		t.pos = i
	}
}
