//go:build amd64 || arm64

package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/storage"
	"github.com/braidgo/braid/simulation/internal/volume"
)

// With the overlay, the calls for files of a guest on a node come to fileCall. A call is executed at once, on the goroutine of the guest,
// which keeps its P: to other guests, a call is like a computation. Only a sync waits, as in a disk.FS. The World learns of
// the changes at the end of the window.

func init() {
	if chance.Nodes() {
		chance.SetFiles(fileCall)
	}
}

// files is the part of a Node for the files of package os.
type files struct {
	v     *volume.Volume // nil before the first call for a file
	notes []change       // the changes of the current call
}

// A change is a change of a file, for the trace.
type change struct {
	text string
	data uint64
}

// fileCall implements chance.FileCall.
func fileCall(trap uintptr, a *[6]uintptr, path, other string, data []byte, p any) (r uintptr, err syscall.Errno, done bool) {
	id := chance.Node()
	h := hostHere()
	if trap == syscall.SYS_CLOSE {
		if !volume.Closed(int(int32(a[0]))) || h == nil {
			return 0, 0, false
		}
		chance.SetNode(id | chance.Inside)
		defer chance.SetNode(id)
		return 0, asErrno(syscall.Close(int(int32(a[0])))), true
	}
	if h == nil {
		return 0, 0, false
	}
	g := h.n.world.guests
	for {
		var w volume.Wait
		if g.again(); g.over {
			g.endCall()
			return 0, syscall.EIO, true
		}
		chance.SetNode(id | chance.Inside)
		r, err, done, w = h.n.openVolume().Call(trap, a, path, other, data, p)
		chance.SetNode(id)
		if notes := h.n.files.notes; len(notes) > 0 {
			h.n.files.notes = nil
			g.ask(&h.n.host, func() { h.n.noteAll(notes) })
		}
		g.endCall()
		switch {
		case w.Again:
			time.Sleep(time.Millisecond)
		case w.Is():
			return h.sync(w)
		default:
			return r, err, done
		}
	}
}

func asErrno(err error) syscall.Errno {
	e := syscall.Errno(0)
	if err != nil && !errors.As(err, &e) {
		return syscall.EIO
	}
	return e
}

// openVolume returns the files of n for a call.
func (n *Node) openVolume() *volume.Volume {
	w, v := n.world, n.files.v
	if v == nil {
		var err error
		if v, err = volume.New(); err != nil {
			panic(fmt.Sprint("simulation: cannot create a folder for the files of ", n.name, ": ", err))
		}
		n.files.v, n.used = v, true
		v.Disk.KeepsNames = w.o.KeepsNames
		v.Fails = func() bool { return w.dice.disk.Chance(w.links.faults.Write) && w.record.Comes("write") }
		v.Note = func(text string, data uint64) { n.files.notes = append(n.files.notes, change{text, data}) }
		v.Rots = n.rot
	}
	v.Full, v.Now = n.disk.full, time.Now().UnixNano()
	return v
}

// noteAll adds changes to the trace. The caller is on the World.
func (n *Node) noteAll(notes []change) {
	h, id := n.world.caller()
	for _, c := range notes {
		n.world.note(event{kind: wrote, host: h, task: id, of: &n.place, data: draws.HashString(c.data, c.text), text: c.text})
	}
}

// rot changes one bit in random sectors between off and end, as a disk.FS does.
func (n *Node) rot(fd int, f *storage.File, name string, off, end int64) {
	w := n.world
	for at := range n.rotten(f, off, end) {
		n.files.v.Flip(fd, f, at, byte(1)<<w.dice.disk.Below(8))
		w.guests.ask(nil, func() { w.log(fmt.Sprintf("the disk of %s has rotted: %s, byte %d", n.name, name, at)) })
	}
}

// sync waits for a sync of files, see volume.Wait.
func (h *Host) sync(w volume.Wait) (r uintptr, err syscall.Errno, done bool) {
	n := h.n
	_, _ = inTask(h, func() (none struct{}, _ error) {
		e := n.diskReady("sync", w.Name, h.boot, 0)
		if e == nil {
			e = n.slowly("sync", w.Name)
		}
		if err = asErrno(e); h.boot == n.boots && !n.dead {
			n.onVolume(func(v *volume.Volume) { r, err = v.EndSync(w, e) })
		}
		return none, nil
	})
	return r, err, true
}

// onVolume calls f with the files of n, if there are any. The caller is on the World.
func (n *Node) onVolume(f func(v *volume.Volume)) {
	if n.files.v != nil {
		f(n.files.v)
		n.noteAll(n.files.notes)
		n.files.notes = nil
	}
}

// crash ends the node's use of its files. Unlike in a disk.FS, unsynced data are lost with the power only.
func (f *files) crash(n *Node) {
	if n.off {
		f.powerOff(n)
	} else {
		n.onVolume((*volume.Volume).Crash)
	}
}

// powerOff loses data that were not synced.
func (f *files) powerOff(n *Node) {
	n.onVolume(func(v *volume.Volume) {
		if err := v.PowerOff(&n.world.dice.disk); err != nil {
			n.world.fail(fmt.Errorf("simulation: seed %d: the files of %s: %w", n.world.o.Seed, n.name, err))
		}
	})
}

// removeFiles removes the files of all nodes.
func (g *guests) removeFiles() {
	for _, name := range slices.Sorted(maps.Keys(g.w.nodes)) {
		if n := g.w.nodes[name]; n.files.v != nil {
			_ = n.files.v.Remove()
		}
	}
}
