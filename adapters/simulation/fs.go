package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/braidgo/braid/suspend"
)

// An FS is the disk of a Node. It survives Crash, as far as it was synced.
//
// File.Sync makes the bytes of a file durable, FS.Sync the names: of what Create, Rename and Remove did. After a crash
// the first few of the changes to names that were not synced are there, and of the bytes each sector of 512 is there or not.
type FS struct {
	n *Node
	h *Host // of a guest
}

// A File is an open file. It is dead once its node has crashed.
type File struct {
	n    *Node
	boot int
	name string
	i    *inode
	h    *Host
}

// FS returns the disk of n.
func (n *Node) FS() FS { return FS{n: n} }

// Create makes an empty file with this name, in place of an older one. No file has the empty name.
func (s FS) Create(name string) (*File, error) {
	return onDisk(s.h, func() (*File, error) { return s.create(name) })
}

func (s FS) create(name string) (*File, error) {
	if err := s.use("create", name); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, pathError("create", name, fs.ErrNotExist)
	}
	if s.n.files.full {
		return nil, pathError("create", name, syscall.ENOSPC)
	}
	i := s.n.files.newInode()
	s.n.files.change(change{name: name, i: i})
	return &File{s.n, s.n.files.boot, name, i, s.h}, nil
}

// Open opens a file for reading and writing.
func (s FS) Open(name string) (*File, error) {
	return onDisk(s.h, func() (*File, error) { return s.open(name) })
}

func (s FS) open(name string) (*File, error) {
	if err := s.use("open", name); err != nil {
		return nil, err
	}
	i := s.n.files.names[name]
	if i == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	return &File{s.n, s.n.files.boot, name, i, s.h}, nil
}

// Rename gives the file old the name new, in place of an older one.
func (s FS) Rename(old, new string) error {
	_, err := onDisk(s.h, func() (struct{}, error) { return struct{}{}, s.rename(old, new) })
	return err
}

func (s FS) rename(old, new string) error {
	if err := s.use("rename", old); err != nil {
		return err
	}
	i := s.n.files.names[old]
	if i == nil {
		return pathError("rename", old, fs.ErrNotExist)
	}
	if new == "" {
		return pathError("rename", old, fs.ErrNotExist)
	}
	s.n.files.change(change{name: new, i: i, gone: old})
	return nil
}

// Remove takes the name away. A File that is open stays.
func (s FS) Remove(name string) error {
	_, err := onDisk(s.h, func() (struct{}, error) { return struct{}{}, s.remove(name) })
	return err
}

func (s FS) remove(name string) error {
	if err := s.use("remove", name); err != nil {
		return err
	}
	if s.n.files.names[name] == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	s.n.files.change(change{gone: name})
	return nil
}

// Names returns the names of all files, in order.
func (s FS) Names() ([]string, error) {
	return onDisk(s.h, func() ([]string, error) {
		if err := s.use("list", "."); err != nil {
			return nil, err
		}
		return slices.Sorted(maps.Keys(s.n.files.names)), nil
	})
}

// Sync makes the names durable. The caller yields first: a crash may come before.
func (s FS) Sync() error {
	_, err := onDisk(s.h, func() (struct{}, error) { return struct{}{}, s.sync() })
	return err
}

func (s FS) sync() error {
	if err := s.use("sync", "."); err != nil {
		return err
	}
	if err := s.n.slowly("sync", "."); err != nil {
		return err
	}
	s.n.files.syncNames()
	return nil
}

func (s FS) use(op, name string) error {
	if err := s.n.diskReady(op, name, s.n.files.boot, 0); err != nil {
		return pathError(op, name, err)
	}
	return nil
}

// diskReady begins an operation of a File that was opened in this boot of n. data is the hash of the bytes.
func (n *Node) diskReady(op, name string, boot int, data uint64) error {
	w := n.world
	switch {
	case !w.enter():
		return ErrForeign
	case n.dead || boot != n.files.boot:
		return os.ErrClosed
	}
	h, id := w.caller()
	w.note(event{kind: wrote, host: h, task: id, of: &n.host, data: hashString(data, name), text: op + " " + name})
	return nil
}

// slowly is the time in which a sync has not happened yet, and then may fail.
func (n *Node) slowly(op, name string) error {
	boot := n.files.boot
	if d := plus(n.world.base.MaxSync, n.files.slow); d > 0 {
		_ = suspend.Sleep(context.Background(), n.world.disk.upTo(d))
	} else if suspend.Current() != nil {
		suspend.Yield()
	}
	switch {
	case n.dead || boot != n.files.boot:
		return pathError(op, name, os.ErrClosed)
	case n.world.disk.chance(n.world.base.Sync) && n.world.comes("sync"):
		return pathError(op, name, syscall.EIO)
	}
	return nil
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func (f *File) use(op string, data uint64) error {
	if err := f.n.diskReady(op, f.name, f.boot, data); err != nil {
		return pathError(op, f.name, err)
	}
	return nil
}

// Name returns the name that the file was opened with.
func (f *File) Name() string { return f.name }

// Size returns the length.
func (f *File) Size() (int64, error) {
	return onDisk(f.h, func() (int64, error) { return f.size() })
}

func (f *File) size() (int64, error) {
	if err := f.use("stat", 0); err != nil {
		return 0, err
	}
	return int64(len(f.i.data)), nil
}

// ReadAt implements io.ReaderAt. It reads all that was written, synced or not, except what has rotted.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	return onDisk(f.h, func() (int, error) { return f.readAt(p, off) })
}

func (f *File) readAt(p []byte, off int64) (int, error) {
	if err := f.use("read", 0); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, errors.New("negative offset"))
	}
	if off >= int64(len(f.i.data)) {
		return 0, io.EOF
	}
	f.rot(off, min(int64(len(f.i.data)), off+int64(len(p))))
	n := copy(p, f.i.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// rot damages sectors that are read from the disk, from off to end: a bit of each. The bytes of a file that was written and not synced come from
// memory.
func (f *File) rot(off, end int64) {
	d := &f.n.files
	if d.rot == 0 || len(f.i.patches) > 0 {
		return
	}
	w := f.n.world
	for at := off - off%sector; at < end; at += sector {
		if w.disk.chance(d.rot) && w.comes("rot") {
			k := at + int64(w.disk.below(int(min(sector, int64(len(f.i.data))-at))))
			bit := byte(1) << w.disk.below(8)
			f.i.data[k] ^= bit
			if k < int64(len(f.i.durable)) {
				f.i.durable[k] ^= bit
			}
			w.log(fmt.Sprintf("the disk of %s has rotted: %s, byte %d", f.n.name, f.name, k))
		}
	}
}

// WriteAt implements io.WriterAt. Of a write that fails nothing is there. A file has at most 1 GiB: beyond, a write fails with EFBIG.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	return onDisk(f.h, func() (int, error) { return f.writeAt(p, off) })
}

func (f *File) writeAt(p []byte, off int64) (int, error) {
	if err := f.use("write", hashBytes(uint64(off), p)); err != nil {
		return 0, err
	}
	w := f.n.world
	switch {
	case off < 0:
		return 0, pathError("write", f.name, errors.New("negative offset"))
	case len(p) == 0:
		return 0, nil
	case off > maxSize-int64(len(p)):
		return 0, pathError("write", f.name, syscall.EFBIG)
	case f.n.files.full && off+int64(len(p)) > int64(len(f.i.data)):
		return 0, pathError("write", f.name, syscall.ENOSPC)
	case w.disk.chance(w.base.Write) && w.comes("write"):
		return 0, pathError("write", f.name, syscall.EIO)
	}
	f.i.write(patch{off: off, data: append([]byte(nil), p...)})
	return len(p), nil
}

// Truncate changes the length. Beyond 1 GiB it fails with EFBIG.
func (f *File) Truncate(size int64) error {
	_, err := onDisk(f.h, func() (struct{}, error) { return struct{}{}, f.truncate(size) })
	return err
}

func (f *File) truncate(size int64) error {
	if err := f.use("truncate", uint64(size)); err != nil {
		return err
	}
	if size < 0 {
		return pathError("truncate", f.name, errors.New("negative size"))
	}
	if size > maxSize {
		return pathError("truncate", f.name, syscall.EFBIG)
	}
	f.i.write(patch{off: size, cut: true})
	return nil
}

// Sync makes the bytes durable. The caller yields first: a crash may come before. If Sync fails, the bytes are not
// durable, and no later Sync makes them so: they have to be written again.
func (f *File) Sync() error {
	_, err := onDisk(f.h, func() (struct{}, error) { return struct{}{}, f.sync() })
	return err
}

func (f *File) sync() error {
	if err := f.use("sync", 0); err != nil {
		return err
	}
	err := f.n.slowly("sync", f.name)
	if f.boot != f.n.files.boot {
		return err
	}
	if err == nil {
		f.i.sync()
	}
	f.i.patches = nil
	return err
}
