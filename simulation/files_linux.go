//go:build amd64 || arm64

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/storage"
	"github.com/braidgo/braid/simulation/internal/volume"
)

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
