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
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/storage"
)

// A Volume is the files of a node. The caller of its methods must not call two of them at the same time, except for Closed.
type Volume struct {
	Disk storage.Disk

	Full  bool                                                       // nothing can be created, and no write makes a file longer
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

// handles has the open files of all volumes by their descriptors.
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

// pathOf returns the path that the program means, from the root of the node. It returns false if the path is not one of the node.
func (v *Volume) pathOf(dirfd int, p string) (string, bool) {
	if !path.IsAbs(p) {
		dir := v.dir
		if dirfd != atCwd {
			real, err := os.Readlink(fdLink(dirfd))
			if err != nil || !path.IsAbs(real) {
				return "", false
			}
			dir = v.inner(real)
		}
		p = dir + "/" + p
	}
	p = path.Clean(p)
	for _, top := range []string{"/dev", "/proc", "/sys"} {
		if p == top || strings.HasPrefix(p, top+"/") {
			return "", false
		}
	}
	return p, true
}

func fdLink(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// inner returns the node's path of a real path.
func (v *Volume) inner(real string) string {
	if rest, ok := strings.CutPrefix(real, v.root); ok && (rest == "" || rest[0] == '/') {
		return path.Clean("/" + rest)
	}
	return real
}

func (v *Volume) real(name string) string { return v.root + name }

// find returns the file with this path of the node, or an error. It follows symbolic links if follow is set.
func (v *Volume) find(name string, follow bool) (*storage.File, syscall.Errno) {
	var st syscall.Stat_t
	stat := syscall.Lstat
	if follow {
		stat = syscall.Stat
	}
	if err := stat(v.real(name), &st); err != nil {
		return nil, errno(err)
	}
	if f := v.at[st.Ino]; f != nil && st.Dev == v.dev {
		return f, 0
	}
	return nil, syscall.ENOENT
}

// place returns the folder of a path, and the last element.
func (v *Volume) place(name string) (in *storage.File, base string) {
	in, _ = v.find(path.Dir(name), true)
	return in, path.Base(name)
}

// makeFolders makes the folder with this path, and its parents. They are durable, because the machine has them, too.
func (v *Volume) makeFolders(name string) {
	if name == "/" || syscall.Access(v.real(name), 0) == nil {
		return
	}
	v.makeFolders(path.Dir(name))
	if syscall.Mkdir(v.real(name), 0o777) != nil {
		return
	}
	if in, base := v.place(name); in != nil {
		v.Disk.Install(in, base, v.adopt(name, v.Disk.NewFolder()))
	}
}

// adopt makes f the file that has just been made with this path.
func (v *Volume) adopt(name string, f *storage.File) *storage.File {
	var st syscall.Stat_t
	_ = syscall.Lstat(v.real(name), &st)
	f.Mode, f.Time = st.Mode&0o7777, v.Now
	v.at[st.Ino] = f
	return f
}

// parents makes the folder of a path if the machine has this folder, and reports whether it did.
func (v *Volume) parents(name string) bool {
	dir := path.Dir(name)
	var st syscall.Stat_t
	if syscall.Access(v.real(dir), 0) == nil || syscall.Stat(dir, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return false
	}
	v.makeFolders(dir)
	return true
}

// retry calls f, and calls it again if the folder of the path had to be made first.
func (v *Volume) retry(name string, f func() error) syscall.Errno {
	err := errno(f())
	if err == syscall.ENOENT && v.parents(name) {
		err = errno(f())
	}
	return err
}

// onMachine reports whether the machine has something with this path that the node does not have.
func (v *Volume) onMachine(name string, follow bool) bool {
	var st syscall.Stat_t
	if _, err := v.find(name, follow); err != syscall.ENOENT {
		return false
	}
	if follow {
		return syscall.Stat(name, &st) == nil
	}
	return syscall.Lstat(name, &st) == nil
}

func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e := syscall.Errno(0); errors.As(err, &e) {
		return e
	}
	return syscall.EIO
}

func (v *Volume) changed(in *storage.File, what string, data uint64) {
	if in != nil {
		in.Time = v.Now
	}
	v.Note(what, data)
}

// open executes an openat.
func (v *Volume) open(name string, flags int, mode uint32) (uintptr, syscall.Errno) {
	if flags&tmpFile == tmpFile {
		return 0, syscall.EOPNOTSUPP
	}
	flags &^= syscall.O_DIRECT // some file systems refuse this flag
	creates, writes := flags&syscall.O_CREAT != 0, flags&(syscall.O_ACCMODE|syscall.O_CREAT|syscall.O_TRUNC) != 0
	f, missing := v.find(name, flags&syscall.O_NOFOLLOW == 0)
	if creates && missing == syscall.ENOENT && v.Full {
		return 0, syscall.ENOSPC
	}
	fd := -1
	open := func(name string) func() error {
		return func() (err error) { fd, err = syscall.Open(name, flags, mode); return err }
	}
	err := syscall.ENOENT
	switch {
	case creates:
		err = v.retry(name, open(v.real(name)))
	case !v.onMachine(name, flags&syscall.O_NOFOLLOW == 0):
		err = errno(open(v.real(name))())
	case writes:
		err = syscall.EROFS
	default:
		if err = errno(open(name)()); err == 0 {
			opened(fd, &handle{v: v, name: name})
			return uintptr(fd), 0
		}
	}
	if err != 0 {
		return 0, err
	}
	h := &handle{v: v, f: f, name: name, append: flags&syscall.O_APPEND != 0, syncs: flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0}
	switch {
	case f == nil && creates:
		real, _ := os.Readlink(fdLink(fd)) // behind symbolic links
		made := v.inner(real)
		h.f = v.adopt(made, v.Disk.NewFile())
		in, base := v.place(made)
		v.Disk.Link(in, base, h.f)
		v.changed(in, "create "+name, 0)
	case f != nil && flags&syscall.O_TRUNC != 0 && f.Size() > 0:
		f.Truncate(0)
		v.changed(f, "truncate "+name, 0)
	}
	opened(fd, h)
	return uintptr(fd), 0
}

// writeAt executes a write at an offset, or at the descriptor's own if off is negative.
func (v *Volume) writeAt(fd int, h *handle, p []byte, off int64) (uintptr, syscall.Errno, Wait) {
	at := off
	switch {
	case h.append:
		at = h.f.Size()
	case off < 0:
		var err error
		if at, err = syscall.Seek(fd, 0, 1); err != nil {
			return 0, errno(err), Wait{}
		}
	}
	switch {
	case len(p) == 0:
	case v.Full && at+int64(len(p)) > h.f.Size():
		return 0, syscall.ENOSPC, Wait{}
	case v.Fails():
		return 0, syscall.EIO, Wait{}
	}
	v.observe(h.f) // a write through a mapping is older
	n, err := 0, error(nil)
	if off < 0 {
		n, err = syscall.Write(fd, p)
	} else {
		n, err = syscall.Pwrite(fd, p, off)
	}
	if n > 0 {
		h.f.Write(bytes.Clone(p[:n]), at)
		v.changed(h.f, "write "+h.name, draws.HashBytes(uint64(at), p[:n]))
	}
	if err == nil && h.syncs {
		return uintptr(n), 0, Wait{Name: h.name, Sync: h.f, r: uintptr(n)}
	}
	return uintptr(max(n, 0)), errno(err), Wait{}
}

func (v *Volume) truncate(f *storage.File, name string, size int64, real func() error) syscall.Errno {
	v.observe(f)
	if err := errno(real()); err != 0 {
		return err
	}
	if size != f.Size() {
		f.Truncate(size)
		v.changed(f, "truncate "+name, uint64(size))
	}
	return 0
}

// rename executes a renameat.
func (v *Volume) rename(from, to string) syscall.Errno {
	f, err := v.find(from, false)
	if err != 0 {
		return err
	}
	other, _ := v.find(to, false)
	in, old := v.place(from)
	if err := v.retry(to, func() error { return syscall.Rename(v.real(from), v.real(to)) }); err != 0 || f == other {
		return err // two names of one file remain
	}
	target, base := v.place(to)
	v.Disk.Move(in, old, target, base)
	in.Time = v.Now
	v.changed(target, "rename "+from+" "+to, 0)
	return 0
}

// make executes a call that makes a file with this path, by the function real.
func (v *Volume) make(what, name string, f *storage.File, real func() error) syscall.Errno {
	if v.onMachine(name, false) {
		return syscall.EEXIST
	}
	if v.Full {
		return syscall.ENOSPC
	}
	if err := v.retry(name, real); err != 0 {
		return err
	}
	in, base := v.place(name)
	v.Disk.Link(in, base, v.adopt(name, f))
	v.changed(in, what+" "+name, 0)
	return 0
}

// observe notices what was written through mappings of f.
func (v *Volume) observe(f *storage.File) {
	for _, m := range v.maps {
		if m.f == f {
			v.observeBy(m.look, f)
			return
		}
	}
}

func (v *Volume) observeBy(fd int, f *storage.File) {
	looked := map[int64]bool{}
	var now, was [storage.Sector * 8]byte
	compare := func(off int64, n int) {
		looked[off] = true
		f.Read(was[:n], off)
		for at := 0; at < n; at += storage.Sector {
			end := min(n, at+storage.Sector)
			if !bytes.Equal(now[at:end], was[at:end]) {
				f.Write(bytes.Clone(now[at:end]), off+int64(at))
				v.changed(f, "write through a mapping", draws.HashBytes(uint64(off)+uint64(at), now[at:end]))
			}
		}
	}
	const data, hole = 3, 4
	for at := int64(0); at < f.Size(); {
		begin, err := syscall.Seek(fd, at, data)
		if err != nil {
			break
		}
		end, err := syscall.Seek(fd, begin, hole)
		if err != nil {
			break
		}
		for at = begin - begin%int64(len(now)); at < end; at += int64(len(now)) {
			if n, err := syscall.Pread(fd, now[:], at); err == nil {
				compare(at, min(n, int(f.Size()-at)))
			}
		}
	}
	clear(now[:])
	for off, p := range f.Blocks {
		if !looked[off] {
			compare(off, len(p))
		}
	}
}

// EndSync ends a Wait for a sync, with the error of the sync.
func (v *Volume) EndSync(w Wait, err error) (uintptr, syscall.Errno) {
	switch {
	case w.All:
		for _, m := range v.maps {
			v.observe(m.f)
		}
		v.Disk.SyncAll()
	case w.Sync.IsFolder():
		if err == nil {
			v.Disk.SyncFolder(w.Sync)
		}
	default:
		if v.observe(w.Sync); err == nil {
			v.Disk.SyncFile(w.Sync)
		}
		w.Sync.Forget()
	}
	if err != nil {
		return 0, errno(err)
	}
	return w.r, 0
}

// Flip changes one bit of a file.
func (v *Volume) Flip(fd int, f *storage.File, off int64, bit byte) {
	var p [1]byte
	out, err := syscall.Open(fdLink(fd), syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if n, _ := syscall.Pread(out, p[:], off); n == 1 {
		_, _ = syscall.Pwrite(out, []byte{p[0] ^ bit}, off)
		f.Flip(off, bit)
	}
	_ = syscall.Close(out)
}

// Crash ends the program of the node as kill -9 does: its locks are released and its descriptors refer to nothing any more. The files remain
// as they are, and unsynced bytes are still not durable.
func (v *Volume) Crash() {
	for _, m := range v.maps {
		v.observeBy(m.look, m.f)
	}
	for _, m := range v.maps {
		_ = syscall.Close(m.look)
	}
	v.maps = nil
	null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	for _, fd := range v.forget() {
		_ = syscall.Flock(fd, syscall.LOCK_UN) // a mapping would keep the lock
		_ = syscall.FcntlFlock(uintptr(fd), setLock, &syscall.Flock_t{Type: syscall.F_UNLCK})
		if err == nil { // the number remains in use until the program's os.File is collected
			_ = syscall.Dup3(null, fd, syscall.O_CLOEXEC)
		}
	}
	if err == nil {
		_ = syscall.Close(null)
	}
}

// forget forgets the open files of v, and returns their descriptors.
func (v *Volume) forget() (fds []int) {
	handles.Lock()
	defer handles.Unlock()
	for _, fd := range slices.Sorted(maps.Keys(handles.m)) {
		if handles.m[fd].v == v {
			fds = append(fds, fd)
			delete(handles.m, fd)
		}
	}
	return fds
}

// PowerOff ends the program as Crash does, and then s decides which of the changes that were not synced survive.
func (v *Volume) PowerOff(s *draws.Source) error {
	v.Crash()
	v.Disk.Crash(s)
	entries, err := os.ReadDir(v.root)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(v.root, e.Name())))
	}
	var st syscall.Stat_t
	v.at = map[uint64]*storage.File{}
	err = errors.Join(err, syscall.Stat(v.root, &st), v.restore("", v.Disk.Root(), map[*storage.File]string{}))
	v.at[st.Ino] = v.Disk.Root()
	return err
}

// restore makes the files of a folder, which exists. A file with several names is made once.
func (v *Volume) restore(dir string, folder *storage.File, made map[*storage.File]string) (err error) {
	for _, base := range folder.Names() {
		f, name := folder.Find(base), dir+"/"+base
		real := v.real(name)
		first, again := made[f]
		made[f] = name
		switch {
		case again:
			err = errors.Join(err, os.Link(v.real(first), real))
			continue
		case f.IsFolder():
			err = errors.Join(err, os.Mkdir(real, 0o700), v.restore(name, f, made), os.Chmod(real, fs.FileMode(f.Mode&0o777)))
		case f.Target != "":
			err = errors.Join(err, os.Symlink(v.target(f.Target), real))
		default:
			err = errors.Join(err, v.restoreFile(real, f))
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(real, &st); err != nil {
			return err
		}
		v.at[st.Ino] = f
	}
	return err
}

func (v *Volume) restoreFile(real string, f *storage.File) error {
	out, err := os.OpenFile(real, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = out.Truncate(f.Size())
	for off, p := range f.Blocks {
		_, e := out.WriteAt(p, off)
		err = errors.Join(err, e)
	}
	return errors.Join(err, out.Chmod(fs.FileMode(f.Mode&0o777)), out.Close())
}

// target returns the real target of a symbolic link.
func (v *Volume) target(t string) string {
	if path.IsAbs(t) {
		return v.real(path.Clean(t))
	}
	return t
}

// String returns the path of the folder.
func (v *Volume) String() string { return fmt.Sprint("files in ", v.root) }
