//go:build amd64 || arm64

package volume

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/storage"
)

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
