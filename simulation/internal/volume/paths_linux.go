//go:build amd64 || arm64

package volume

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/braidgo/braid/simulation/internal/storage"
)

// pathOf returns the path that the program means, from the root of the node. It returns false if the path is one of the machine.
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
			return p, false
		}
	}
	return p, true
}

// measures reports whether a path is one of a file in which the kernel measures the machine or a process. A node does not have these files,
// because the figures differ at each moment.
func measures(p string) bool {
	dir, name := path.Split(p)
	switch name {
	case "stat", "statm", "status", "io", "sched", "schedstat", "smaps", "smaps_rollup", "loadavg", "meminfo", "uptime", "vmstat", "diskstats":
		return strings.HasPrefix(dir, "/proc/")
	}
	return false
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
