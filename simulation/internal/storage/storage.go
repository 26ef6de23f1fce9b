// Package storage has the state of a simulated disk: what a program has written, and what of it is durable. A crash keeps a random prefix of
// the unsynced changes to names, and keeps or loses each unsynced sector.
//
// The state has neither a clock nor errors: its caller decides how long a sync takes, and which writes fail.
package storage

import (
	"maps"
	"slices"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// A Disk is the state of a disk. The zero value is an empty disk.
type Disk struct {
	names   map[string]*File
	durable map[string]*File
	changes []change // the changes to names since the last sync of the names, in order
	files   []*File  // the files that have a name, or had a name since the last sync of the names; the oldest first
}

// A change gives a file a name, or removes a name, or does both, as a Rename does.
type change struct {
	name string
	f    *File
	gone string
}

// A File holds the bytes of a file. An open file remains usable without a name.
type File struct {
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

// Sector is the number of bytes that a crash keeps or loses together.
const Sector = 512

// Create creates an empty file, which replaces an older file of this name.
func (d *Disk) Create(name string) *File {
	f := new(File)
	d.files = append(d.files, f)
	d.change(change{name: name, f: f})
	return f
}

// Find returns the file with this name, or nil.
func (d *Disk) Find(name string) *File { return d.names[name] }

// Rename changes the name of a file, which must exist.
func (d *Disk) Rename(old, new string) { d.change(change{name: new, f: d.names[old], gone: old}) }

// Remove removes a name.
func (d *Disk) Remove(name string) { d.change(change{gone: name}) }

// Names returns all names, sorted.
func (d *Disk) Names() []string { return slices.Sorted(maps.Keys(d.names)) }

func (d *Disk) change(c change) {
	d.names = c.to(d.names)
	d.changes = append(d.changes, c)
}

// to applies c to names, and returns the changed map.
func (c change) to(names map[string]*File) map[string]*File {
	if names == nil {
		names = map[string]*File{}
	}
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.f != nil {
		names[c.name] = c.f
	}
	return names
}

// Sync makes the names durable.
func (d *Disk) Sync() {
	d.durable = maps.Clone(d.names)
	d.changes = nil
	d.dropUnnamed()
}

// dropUnnamed drops the files without a name. A file that is open remains until a crash.
func (d *Disk) dropUnnamed() {
	if len(d.files) > len(d.names) {
		withName := slices.Collect(maps.Values(d.names))
		d.files = slices.DeleteFunc(d.files, func(f *File) bool { return !slices.Contains(withName, f) })
	}
}

// Size returns the length of the file.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Read copies the bytes at the offset off to p, and returns their number.
func (f *File) Read(p []byte, off int64) int { return copy(p, f.data[off:]) }

// Write writes p, which the File keeps, at the offset off.
func (f *File) Write(p []byte, off int64) { f.write(patch{off: off, data: p}) }

// Truncate changes the length of the file.
func (f *File) Truncate(size int64) { f.write(patch{off: size, cut: true}) }

func (f *File) write(p patch) {
	f.data = p.to(f.data)
	f.patches = append(f.patches, p)
}

// IsSynced reports whether all writes are durable, or were lost by Forget.
func (f *File) IsSynced() bool { return len(f.patches) == 0 }

// Flip changes a bit of the byte at the offset off, in memory and on the disk.
func (f *File) Flip(off int64, bit byte) {
	f.data[off] ^= bit
	if off < int64(len(f.durable)) {
		f.durable[off] ^= bit
	}
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

// Sync makes all writes durable.
func (f *File) Sync() {
	for _, p := range f.patches {
		f.durable = p.to(f.durable)
	}
	f.patches = nil
}

// Forget is called instead of Sync if the Sync fails: the writes since the last Sync will not become durable.
func (f *File) Forget() { f.patches = nil }

// Crash decides at random which unsynced names and bytes survive, and discards the rest.
func (d *Disk) Crash(s *draws.Source) {
	kept := 0
	if len(d.changes) > 0 {
		kept = s.Below(len(d.changes) + 1)
	}
	for _, c := range d.changes[:kept] {
		d.durable = c.to(d.durable)
	}
	d.changes = nil
	d.names = maps.Clone(d.durable)
	for _, f := range d.files {
		if len(f.patches) > 0 {
			f.crash(s)
		}
		f.data = slices.Clone(f.durable)
	}
	d.dropUnnamed()
}

// crash decides at random for each sector of each patch whether the sector survives.
func (f *File) crash(s *draws.Source) {
	mode := s.Below(4) // 0 keeps all patches, and 1 keeps none
	for _, p := range f.patches {
		for first := true; first || len(p.data) > 0; first = false {
			part := p
			if room := int(Sector - p.off%Sector); len(p.data) > room {
				part.data = p.data[:room]
			}
			if mode == 0 || mode > 1 && s.Below(2) == 0 {
				f.durable = part.to(f.durable)
			}
			p.off += int64(len(part.data))
			p.data = p.data[len(part.data):]
		}
	}
	f.patches = nil
}
