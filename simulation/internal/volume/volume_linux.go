//go:build amd64 || arm64

// Package volume has the files of a simulated node, which are files of the operating system below a folder of the node. So a program can map
// them into memory and lock them. A Volume executes system calls for files: it changes their paths, and repeats each change on a storage.Disk,
// from which PowerOff restores the folder.
//
// # Paths
//
// A path of the node is a path below the node's folder. The machine's own files lie under it, and cannot be changed: a program reads a
// file from the machine if the node does not have the file. So it finds its time zones, certificates, test data, and the configuration that a test has written.
// A folder of the machine exists on the node, too, and is empty there as soon as the program creates something in it. A folder is listed on
// the node or on the machine, and not on both. /dev, /proc and /sys are the machine's own.
package volume

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/storage"
)

// A Volume is the files of a node. The caller of its methods must not call two of them at the same time, except for Closed.
type Volume struct {
	Disk storage.Disk

	Full  bool                                                       // nothing can be created, and no file gets another sector
	Now   int64                                                      // the time of changes, in ns
	Fails func() bool                                                // whether the next write fails
	Rots  func(fd int, f *storage.File, name string, off, end int64) // called before a read
	Note  func(text string, data uint64)                             // called after each change, with a hash of the bytes

	root string
	lock *os.File // locked as long as the folder is in use
	dev  uint64
	at   map[uint64]*storage.File // the files by their inode numbers
	maps []*mapping
	dir  string // the working directory
}

// A mapping is a part of memory that has the bytes of a file, and may be written.
type mapping struct {
	at, size uintptr
	f        *storage.File
	name     string
	look     int // a descriptor for reading the file
}

// A handle is an open file.
type handle struct {
	v      *Volume
	f      *storage.File // nil for a file of the machine
	name   string
	append bool
	syncs  bool // each write is followed by a sync
}

// handles holds the open files of all volumes by their descriptors.
var handles struct {
	sync.Mutex
	m map[int]*handle
}

// A Wait is what a call has to wait for.
type Wait struct {
	Name  string
	Sync  *storage.File // a sync of this file or folder
	All   bool          // a sync of everything
	Again bool          // a lock: the call has to be made again later
	r     uintptr       // the result of the call
}

// Is reports whether there is something to wait for.
func (w Wait) Is() bool { return w.Sync != nil || w.All || w.Again }

const prefix = "braid-node-"

// removeOld removes folders of processes that have ended without a Remove.
var removeOld sync.Once

// New returns an empty Volume, whose folder is in memory if the machine has such a file system. It has a folder for temporary files, the
// working directory and the home directory of the process.
func New() (*Volume, error) {
	base := "/dev/shm"
	if syscall.Access(base, 7) != nil {
		base = os.TempDir()
	}
	removeOld.Do(func() { sweep(base) })
	root, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, err
	}
	v := &Volume{root: root, at: map[uint64]*storage.File{}, Fails: func() bool { return false }, Note: func(string, uint64) {}}
	v.Rots = func(int, *storage.File, string, int64, int64) {}
	if v.lock, err = os.Open(root); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(v.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	if err := syscall.Stat(root, &st); err != nil {
		return nil, err
	}
	v.dev, v.at[st.Ino], v.dir = st.Dev, v.Disk.Root(), "/"
	v.Disk.Root().Mode = 0o755
	home, _ := os.UserHomeDir()
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{os.TempDir(), dir, home} {
		if path.IsAbs(name) {
			v.makeFolders(path.Clean(name))
		}
	}
	v.dir = dir
	return v, nil
}

func sweep(base string) {
	left, _ := filepath.Glob(filepath.Join(base, prefix+"*"))
	for _, root := range left {
		f, err := os.Open(root)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && time.Since(info.ModTime()) > time.Minute && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(root)
		}
		_ = f.Close()
	}
}

// Remove removes the folder. The Volume must not be used any more.
func (v *Volume) Remove() error {
	v.Crash()
	return errors.Join(os.RemoveAll(v.root), v.lock.Close())
}

// Closed is called before any goroutine closes a descriptor. It reports whether this was an open file of a Volume.
func Closed(fd int) bool {
	handles.Lock()
	defer handles.Unlock()
	_, ours := handles.m[fd]
	delete(handles.m, fd)
	return ours
}

func handleOf(fd int) *handle {
	handles.Lock()
	defer handles.Unlock()
	return handles.m[fd]
}

func opened(fd int, h *handle) {
	handles.Lock()
	defer handles.Unlock()
	if handles.m == nil {
		handles.m = map[int]*handle{}
	}
	handles.m[fd] = h
}

// String returns the path of the folder.
func (v *Volume) String() string { return fmt.Sprint("files in ", v.root) }
