package simulation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/braidgo/braid/simulation/disk"
	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/storage"
)

// A nodeFS is the disk of a Node.
type nodeFS struct {
	n *Node
	h *Host // the Host of a guest, or nil for tasks
}

// maxSize is the maximum size of a file in bytes.
const maxSize = 1 << 30

// A file is an open file. Its operations fail once its node has crashed.
type file struct {
	n      *Node
	boot   int
	name   string
	f      *storage.File
	h      *Host
	closed bool
}

// FS returns the disk of n. State that was synced survives a Crash. A crash keeps a random prefix of the unsynced changes to names, and
// keeps or loses each unsynced sector of 512 bytes. A name may contain slashes. A Sync first yields, so that the node may crash before
// anything is synced. A write that fails has written nothing, except on a full disk. A file has at most 1 GiB; a larger write or Truncate fails with EFBIG. After
// a crash, operations on files that were open fail with os.ErrClosed.
func (n *Node) FS() disk.FS { return nodeFS{n: n} }

// FS returns the disk of the node. After a Crash, calls of the FS, and of its files except Close, end the calling goroutine with
// runtime.Goexit instead of returning an error, because programs tend to panic on disk errors.
func (h *Host) FS() disk.FS { return nodeFS{h.n, h} }

// Create creates an empty file, which replaces an older file of that name. The name must not be empty.
func (s nodeFS) Create(name string) (disk.File, error) {
	return onDisk(s.h, func() (disk.File, error) {
		if err := s.use("create", name); err != nil {
			return nil, err
		}
		if name == "" {
			return nil, pathError("create", name, fs.ErrNotExist)
		}
		if s.n.disk.full {
			return nil, pathError("create", name, syscall.ENOSPC)
		}
		return &file{n: s.n, boot: s.n.boots, name: name, f: s.n.disk.Create(name), h: s.h}, nil
	})
}

// Open opens an existing file for reading and writing.
func (s nodeFS) Open(name string) (disk.File, error) {
	return onDisk(s.h, func() (disk.File, error) {
		if err := s.use("open", name); err != nil {
			return nil, err
		}
		f := s.n.disk.Find(name)
		if f == nil {
			return nil, pathError("open", name, fs.ErrNotExist)
		}
		return &file{n: s.n, boot: s.n.boots, name: name, f: f, h: s.h}, nil
	})
}

// Rename changes the name of a file. An older file with the new name is replaced.
func (s nodeFS) Rename(old, new string) error {
	return onDiskErr(s.h, func() error {
		if err := s.use("rename", old); err != nil {
			return err
		}
		if s.n.disk.Find(old) == nil || new == "" {
			return pathError("rename", old, fs.ErrNotExist)
		}
		s.n.disk.Rename(old, new)
		return nil
	})
}

// Remove removes the name. An open File remains usable.
func (s nodeFS) Remove(name string) error {
	return onDiskErr(s.h, func() error {
		if err := s.use("remove", name); err != nil {
			return err
		}
		if s.n.disk.Find(name) == nil {
			return pathError("remove", name, fs.ErrNotExist)
		}
		s.n.disk.Remove(name)
		return nil
	})
}

// Names returns the names of all files, sorted.
func (s nodeFS) Names() ([]string, error) {
	return onDisk(s.h, func() ([]string, error) {
		if err := s.use("list", "."); err != nil {
			return nil, err
		}
		return s.n.disk.Names(), nil
	})
}

// Sync makes the names durable. It yields first, see Node.FS.
func (s nodeFS) Sync() error {
	return onDiskErr(s.h, func() error {
		if err := s.use("sync", "."); err != nil {
			return err
		}
		if err := s.n.slowly("sync", "."); err != nil {
			return err
		}
		s.n.disk.Sync()
		return nil
	})
}

func (s nodeFS) use(op, name string) error {
	s.n.used = true
	if err := s.n.diskReady(op, name, s.n.boots, 0); err != nil {
		return pathError(op, name, err)
	}
	return nil
}

func (f *file) use(op string, data uint64) error {
	if f.closed {
		return pathError(op, f.name, os.ErrClosed)
	}
	if err := f.n.diskReady(op, f.name, f.boot, data); err != nil {
		return pathError(op, f.name, err)
	}
	return nil
}

// Close closes f. It does not sync. It returns even to a guest of a crashed node.
func (f *file) Close() error {
	err := pathError("close", f.name, os.ErrClosed)
	f.h.close(func() {
		err = f.use("close", 0)
		f.closed = true
	})
	return err
}

// Name returns the name that was passed to Create or Open.
func (f *file) Name() string { return f.name }

// Size returns the length of the file.
func (f *file) Size() (int64, error) {
	return onDisk(f.h, func() (int64, error) {
		if err := f.use("stat", 0); err != nil {
			return 0, err
		}
		return f.f.Size(), nil
	})
}

// ReadAt implements io.ReaderAt. It reads all bytes that were written, whether or not they were synced, except that RotDisk may have
// changed some bits.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	return onDisk(f.h, func() (int, error) {
		if err := f.use("read", 0); err != nil {
			return 0, err
		}
		if off < 0 {
			return 0, pathError("read", f.name, errors.New("negative offset"))
		}
		if off >= f.f.Size() {
			return 0, io.EOF
		}
		f.rot(off, min(f.f.Size(), off+int64(len(p))))
		n := f.f.Read(p, off)
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	})
}

// rot changes one bit in random sectors between off and end, which the caller is about to read.
func (f *file) rot(off, end int64) {
	w := f.n.world
	for at := range f.n.rotten(f.f, off, end) {
		f.f.Flip(at, byte(1)<<w.dice.disk.Below(8))
		w.log(fmt.Sprintf("the disk of %s has rotted: %s, byte %d", f.n.name, f.name, at))
	}
}

// WriteAt implements io.WriterAt. A write that fails writes nothing, except on a full disk, see Node.FullDisk.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return onDisk(f.h, func() (int, error) {
		if err := f.use("write", draws.HashBytes(uint64(off), p)); err != nil {
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
		case f.n.disk.full && f.f.Fits(len(p), off) < len(p):
			n := f.f.Fits(len(p), off)
			if n > 0 {
				f.f.Write(append([]byte(nil), p[:n]...), off)
			}
			return n, pathError("write", f.name, syscall.ENOSPC)
		case w.dice.disk.Chance(w.links.faults.Write) && w.record.Comes("write"):
			return 0, pathError("write", f.name, syscall.EIO)
		}
		f.f.Write(append([]byte(nil), p...), off)
		return len(p), nil
	})
}

// Truncate changes the length of the file. A size above 1 GiB fails with EFBIG.
func (f *file) Truncate(size int64) error {
	return onDiskErr(f.h, func() error {
		if err := f.use("truncate", uint64(size)); err != nil {
			return err
		}
		if size < 0 {
			return pathError("truncate", f.name, errors.New("negative size"))
		}
		if size > maxSize {
			return pathError("truncate", f.name, syscall.EFBIG)
		}
		f.f.Truncate(size)
		return nil
	})
}

// Sync makes the bytes durable. It yields first, see Node.FS. If Sync fails, the bytes are not durable, and a later Sync does not make them
// durable: the program must write them again.
func (f *file) Sync() error {
	return onDiskErr(f.h, func() error {
		if err := f.use("sync", 0); err != nil {
			return err
		}
		err := f.n.slowly("sync", f.name)
		if f.boot != f.n.boots {
			return err
		}
		if err == nil {
			f.n.disk.SyncFile(f.f)
		}
		f.f.Forget()
		return err
	})
}
