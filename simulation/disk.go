package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// A diskState is the state of a node's disk.
type diskState struct {
	boot    int // the number of crashes so far
	names   map[string]*inode
	durable map[string]*inode
	changes []change // the changes to names since the last sync of the names, in order
	slow    time.Duration
	full    bool
	rot     float64
	inodes  []*inode // the inodes that have a name, or had a name since the last sync of the names; the oldest first
}

// A change gives an inode a name, or removes a name, or does both, as a Rename does.
type change struct {
	name string
	i    *inode
	gone string
}

// An inode holds the bytes of a file.
type inode struct {
	data    []byte
	durable []byte
	patches []patch // the patches since the last sync, in order
}

// A patch is a write of data at the offset off. If cut is set, the patch is a Truncate to the length off.
type patch struct {
	off  int64
	data []byte
	cut  bool
}

const (
	sector  = 512
	maxSize = 1 << 30 // the maximum size of a file in bytes
)

func (d *diskState) newInode() *inode {
	i := new(inode)
	d.inodes = append(d.inodes, i)
	return i
}

func (d *diskState) change(c change) {
	d.names = c.to(d.names)
	d.changes = append(d.changes, c)
}

// to applies c to names, and returns the changed map.
func (c change) to(names map[string]*inode) map[string]*inode {
	if names == nil {
		names = map[string]*inode{}
	}
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.i != nil {
		names[c.name] = c.i
	}
	return names
}

func (d *diskState) syncNames() {
	d.durable = maps.Clone(d.names)
	d.changes = nil
	d.dropUnnamed()
}

// dropUnnamed drops the inodes without a name. An open file keeps its inode until a crash.
func (d *diskState) dropUnnamed() {
	if len(d.inodes) > len(d.names) {
		withName := slices.Collect(maps.Values(d.names))
		d.inodes = slices.DeleteFunc(d.inodes, func(i *inode) bool { return !slices.Contains(withName, i) })
	}
}

func (i *inode) write(p patch) {
	i.data = p.to(i.data)
	i.patches = append(i.patches, p)
}

// to applies p to data, and returns the changed data.
func (p patch) to(data []byte) []byte {
	end := p.off + int64(len(p.data))
	if p.cut && end < int64(len(data)) {
		return data[:end]
	}
	if grow := end - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[p.off:], p.data)
	return data
}

// sync makes the patches durable.
func (i *inode) sync() {
	for _, p := range i.patches {
		i.durable = p.to(i.durable)
	}
}

// crash decides at random which unsynced names and bytes survive, and discards the rest.
func (d *diskState) crash(s *draws.Source) {
	d.boot++
	kept := 0
	if len(d.changes) > 0 {
		kept = s.Below(len(d.changes) + 1)
	}
	for _, c := range d.changes[:kept] {
		d.durable = c.to(d.durable)
	}
	d.changes = nil
	d.names = maps.Clone(d.durable)
	for _, i := range d.inodes {
		if len(i.patches) > 0 {
			i.crash(s)
		}
		i.data = slices.Clone(i.durable)
	}
	d.dropUnnamed()
}

// crash decides at random for each sector of each patch whether the sector survives.
func (i *inode) crash(s *draws.Source) {
	mode := s.Below(4) // 0 keeps all patches, and 1 keeps none
	for _, p := range i.patches {
		for first := true; first || len(p.data) > 0; first = false {
			part := p
			if room := int(sector - p.off%sector); len(p.data) > room {
				part.data = p.data[:room]
			}
			if mode == 0 || mode > 1 && s.Below(2) == 0 {
				i.durable = part.to(i.durable)
			}
			p.off += int64(len(part.data))
			p.data = p.data[len(part.data):]
		}
	}
	i.patches = nil
}
