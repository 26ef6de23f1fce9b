// Package storage has the state of a simulated disk: what a program has written, and what of it is durable. A crash keeps a random prefix of
// the unsynced changes to names, and keeps or loses each unsynced sector.
//
// The state has neither a clock nor errors: its caller decides how long a sync takes, and which writes fail.
package storage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// A Disk is the state of a disk: a tree of folders. The zero value is an empty disk. Create, Find, Rename, Remove and Names use the root
// folder alone, for a disk without other folders.
type Disk struct {
	// KeepsNames makes a Sync of a file or a folder keep all changes to names so far, as the journal of ext4 does. Otherwise the names of a
	// folder are durable after a Sync of the folder, and not before: POSIX promises no more.
	KeepsNames bool

	root    *File
	changes []change // the changes to names that are not durable, in order
	born    int
}

// A change gives a file a name, or removes a name, or does both, as a Rename does.
type change struct {
	in   *File
	name string
	f    *File
	from *File
	gone string
}

// A File holds the bytes of a file, or the names in a folder, or the target of a symbolic link. An open file remains usable without a name.
type File struct {
	// These fields are for the caller. A crash does not change them.
	Mode   uint32
	Time   int64  // the time of the last change, in ns
	Target string // the target of a symbolic link

	n       int // the number of files that are older
	data    sparse
	durable sparse
	patches []patch          // the patches since the last sync, in order
	names   map[string]*File // the names in a folder; nil for a file
	kept    map[string]*File // the names that are durable
}

// A patch is a write of data at the offset off. If cut is set, the patch is a Truncate to the length off.
type patch struct {
	off  int64
	data []byte
	cut  bool
}

// Sector is the number of bytes that a crash keeps or loses together.
const Sector = 512

// Root returns the root folder.
func (d *Disk) Root() *File {
	if d.root == nil {
		d.root = &File{names: map[string]*File{}, kept: map[string]*File{}}
	}
	return d.root
}

// NewFile returns a file without a name.
func (d *Disk) NewFile() *File {
	d.born++
	return &File{n: d.born}
}

// NewFolder returns a folder without a name.
func (d *Disk) NewFolder() *File {
	f := d.NewFile()
	f.names, f.kept = map[string]*File{}, map[string]*File{}
	return f
}

// Create creates an empty file, which replaces an older file of this name.
func (d *Disk) Create(name string) *File {
	f := d.NewFile()
	d.Link(d.Root(), name, f)
	return f
}

// Find returns the file with this name, or nil.
func (d *Disk) Find(name string) *File { return d.Root().names[name] }

// Rename changes the name of a file, which must exist.
func (d *Disk) Rename(old, new string) { d.Move(d.Root(), old, d.Root(), new) }

// Remove removes a name.
func (d *Disk) Remove(name string) { d.Unlink(d.Root(), name) }

// Names returns all names, sorted.
func (d *Disk) Names() []string { return d.Root().Names() }

// Link gives f a name in a folder. It replaces an older file of this name.
func (d *Disk) Link(in *File, name string, f *File) { d.change(change{in: in, name: name, f: f}) }

// Install gives f a name that is durable at once.
func (d *Disk) Install(in *File, name string, f *File) { in.names[name], in.kept[name] = f, f }

// Unlink removes a name from a folder.
func (d *Disk) Unlink(from *File, name string) { d.change(change{from: from, gone: name}) }

// Move moves a file, which must exist, to another folder or another name. It replaces an older file there.
func (d *Disk) Move(from *File, old string, to *File, new string) {
	d.change(change{in: to, name: new, f: from.names[old], from: from, gone: old})
}

func (d *Disk) change(c change) {
	c.to(func(f *File) map[string]*File { return f.names })
	d.changes = append(d.changes, c)
}

// to applies c to the names of its folders.
func (c change) to(names func(folder *File) map[string]*File) {
	if c.from != nil {
		delete(names(c.from), c.gone)
	}
	if c.f != nil {
		names(c.in)[c.name] = c.f
	}
}

// makeDurable makes c durable.
func (c change) makeDurable() { c.to(func(f *File) map[string]*File { return f.kept }) }

// Sync makes all names durable.
func (d *Disk) Sync() {
	for _, c := range d.changes {
		c.makeDurable()
	}
	d.changes = nil
}

// SyncAll makes everything durable.
func (d *Disk) SyncAll() {
	for _, f := range d.all() {
		f.Sync()
	}
	d.Sync()
}

// SyncFolder makes the names in a folder durable. A file that was moved from or to another folder has its old name or its new one, so the
// earlier changes of that folder become durable, too.
func (d *Disk) SyncFolder(f *File) {
	if d.KeepsNames {
		d.Sync()
		return
	}
	folders, left := map[*File]bool{f: true}, d.changes[:0:0]
	var keep []change
	for _, c := range slices.Backward(d.changes) {
		if !folders[c.in] && !folders[c.from] {
			left = append(left, c)
			continue
		}
		keep = append(keep, c)
		for _, other := range []*File{c.in, c.from} {
			if other != nil {
				folders[other] = true
			}
		}
	}
	for _, c := range slices.Backward(keep) {
		c.makeDurable()
	}
	slices.Reverse(left)
	d.changes = left
}

// SyncFile makes the writes of f durable.
func (d *Disk) SyncFile(f *File) {
	if f.Sync(); d.KeepsNames {
		d.Sync()
	}
}

// IsFolder reports whether f is a folder.
func (f *File) IsFolder() bool { return f.names != nil }

// Names returns the names in a folder, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.names)) }

// Find returns the file with this name in a folder, or nil.
func (f *File) Find(name string) *File { return f.names[name] }

// Size returns the length of the file.
func (f *File) Size() int64 { return f.data.size }

// Read copies the bytes at the offset off to p, and returns their number.
func (f *File) Read(p []byte, off int64) int { return f.data.read(p, off) }

// Blocks calls yield with the blocks of the file that are not missing, and their offsets, in order. Missing blocks have zeros. The caller
// must not change p.
func (f *File) Blocks(yield func(off int64, p []byte) bool) {
	for _, i := range slices.Sorted(maps.Keys(f.data.blocks)) {
		if !yield(i*block, f.data.blocks[i][:min(block, f.data.size-i*block)]) {
			return
		}
	}
}

// Fits returns how many of n bytes at the offset off a full disk has room for, which are the bytes in sectors that the file has.
func (f *File) Fits(n int, off int64) int {
	end := (f.data.size + Sector - 1) / Sector * Sector
	return int(max(0, min(int64(n), end-off)))
}

// Write writes p, which the File keeps, at the offset off.
func (f *File) Write(p []byte, off int64) { f.write(patch{off: off, data: p}) }

// Truncate changes the length of the file.
func (f *File) Truncate(size int64) { f.write(patch{off: size, cut: true}) }

func (f *File) write(p patch) {
	p.to(&f.data)
	f.patches = append(f.patches, p)
}

// IsSynced reports whether all writes are durable, or were lost by Forget.
func (f *File) IsSynced() bool { return len(f.patches) == 0 }

// Flip changes a bit of the byte at the offset off, in memory and on the disk.
func (f *File) Flip(off int64, bit byte) {
	for _, c := range []*sparse{&f.data, &f.durable} {
		var p [1]byte
		if c.read(p[:], off) == 1 {
			c.put([]byte{p[0] ^ bit}, off)
		}
	}
}

// to applies p to c.
func (p patch) to(c *sparse) {
	if p.cut {
		c.truncate(p.off)
	} else {
		c.put(p.data, p.off)
	}
}

// Sync makes all writes durable.
func (f *File) Sync() {
	for _, p := range f.patches {
		p.to(&f.durable)
	}
	f.patches = nil
}

// Forget is called instead of Sync if the Sync fails: the writes since the last Sync will not become durable.
func (f *File) Forget() { f.patches = nil }

// Crash decides at random which unsynced names and bytes survive, and discards the rest.
func (d *Disk) Crash(s *draws.Source) {
	files := d.all()
	kept := 0
	if len(d.changes) > 0 {
		kept = s.Below(len(d.changes) + 1)
	}
	for _, c := range d.changes[:kept] {
		c.makeDurable()
	}
	d.changes = nil
	for _, f := range files {
		if len(f.patches) > 0 {
			f.crash(s)
		}
		f.data = f.durable.clone()
		f.names = maps.Clone(f.kept)
	}
}

// all returns the files with a name, or with a name that is durable or was removed since the last sync, the oldest first.
func (d *Disk) all() []*File {
	seen := map[*File]bool{}
	var add func(f *File)
	add = func(f *File) {
		if f == nil || seen[f] {
			return
		}
		seen[f] = true
		for _, names := range []map[string]*File{f.names, f.kept} {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				add(names[name])
			}
		}
	}
	add(d.Root())
	for _, c := range d.changes {
		add(c.in)
		add(c.from)
		add(c.f)
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b *File) int { return cmp.Compare(a.n, b.n) })
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
				part.to(&f.durable)
			}
			p.off += int64(len(part.data))
			p.data = p.data[len(part.data):]
		}
	}
	f.patches = nil
}
