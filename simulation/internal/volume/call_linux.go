//go:build amd64 || arm64

package volume

import (
	"strings"
	"syscall"

	"github.com/braidgo/braid/simulation/internal/storage"
)

const (
	atCwd       = -100
	atRemoveDir = 0x200
	atNoFollow  = 0x100
	atEmptyPath = 0x1000
	atFollow    = 0x400
	tmpFile     = 0x400000 // without O_DIRECTORY
	setLock     = 37       // F_OFD_SETLK
	setLockWait = 38
	dupFD       = 1030 // F_DUPFD_CLOEXEC
	noReplace   = 1
)

// Call executes a system call for a program on the node. It returns done as false if the call is none for files of the node: then the program
// makes the call itself. If there is a Wait, EndSync or another Call has the result.
//
// p and data may be on the stack of the caller, so Call must not keep them.
func (v *Volume) Call(trap uintptr, a *[6]uintptr, p1, p2 string, data []byte, p any) (r uintptr, err syscall.Errno, done bool, w Wait) {
	switch trap {
	case syscall.SYS_OPENAT, syscall.SYS_MKDIRAT, syscall.SYS_UNLINKAT, syscall.SYS_FCHMODAT, syscall.SYS_FCHOWNAT, syscall.SYS_FACCESSAT, sysFaccessat2,
		syscall.SYS_MKNODAT, sysOpenat2, sysStatx, sysFstatat, syscall.SYS_READLINKAT, syscall.SYS_UTIMENSAT:
		name, ours := v.pathOf(int(int32(a[0])), p1)
		if !ours && measures(name) {
			return 0, syscall.ENOENT, true, w
		}
		if !ours {
			return 0, 0, false, w
		}
		if p1 == "" && handleOf(int(int32(a[0]))) == nil { // a call for the descriptor of a file that is not ours
			return 0, 0, false, w
		}
		r, err = v.at1(trap, a, name, p1, data, p)
		return r, err, true, w
	case syscall.SYS_TRUNCATE, syscall.SYS_CHDIR, syscall.SYS_STATFS:
		name, ours := v.pathOf(atCwd, p1)
		if !ours {
			return 0, 0, false, w
		}
		return 0, v.byPath(trap, name, int64(a[1]), p), true, w
	case syscall.SYS_SYMLINKAT:
		name, ours := v.pathOf(int(int32(a[1])), p2)
		if !ours {
			return 0, syscall.EROFS, true, w
		}
		f := v.Disk.NewFile()
		f.Target = p1
		return 0, v.make("symlink", name, f, func() error { return syscall.Symlink(v.target(p1), v.real(name)) }), true, w
	case syscall.SYS_LINKAT, syscall.SYS_RENAMEAT, sysRenameat2:
		from, ours := v.pathOf(int(int32(a[0])), p1)
		to, too := v.pathOf(int(int32(a[2])), p2)
		if !ours || !too {
			return 0, syscall.EXDEV, true, w
		}
		return 0, v.at2(trap, from, to, a[4]), true, w
	case syscall.SYS_GETCWD:
		if len(data) <= len(v.dir) {
			return 0, syscall.ERANGE, true, w
		}
		data[copy(data, v.dir)] = 0
		return uintptr(len(v.dir) + 1), 0, true, w
	case syscall.SYS_SYNC:
		return 0, 0, true, Wait{Name: "/", All: true}
	case syscall.SYS_MUNMAP, syscall.SYS_MREMAP, syscall.SYS_MSYNC:
		return v.memory(trap, a)
	case syscall.SYS_MMAP:
		a[0], a[4] = a[4], a[0] // the descriptor first
		defer func() { a[0], a[4] = a[4], a[0] }()
	}
	fd := int(int32(a[0]))
	h := handleOf(fd)
	if h == nil {
		return 0, 0, false, w
	}
	if h.f == nil {
		r, err = onMachineFile(trap, fd, a, data, p)
		return r, err, true, w
	}
	if h.v != v { // a descriptor of another node, which has reached this one by a package variable
		return 0, syscall.EBADF, true, w
	}
	r, err, w = v.byHandle(trap, fd, h, a, data, p)
	return r, err, true, w
}

// at1 executes a call with one path.
func (v *Volume) at1(trap uintptr, a *[6]uintptr, name, given string, data []byte, p any) (uintptr, syscall.Errno) {
	switch trap {
	case syscall.SYS_OPENAT:
		if strings.HasSuffix(given, "/") {
			a[2] |= syscall.O_DIRECTORY
		}
		return v.open(name, int(a[2]), uint32(a[3]))
	case syscall.SYS_MKDIRAT:
		return 0, v.make("mkdir", name, v.Disk.NewFolder(), func() error { return syscall.Mkdir(v.real(name), uint32(a[2])) })
	case syscall.SYS_UNLINKAT:
		remove := syscall.Unlink
		if a[2]&atRemoveDir != 0 {
			remove = syscall.Rmdir
		}
		in, base := v.place(name)
		if err := errno(remove(v.real(name))); err != 0 {
			return 0, err
		}
		v.Disk.Unlink(in, base)
		v.changed(in, "remove "+name, 0)
		return 0, 0
	case sysFstatat:
		real := v.seen(name, a[3]&atNoFollow == 0 || a[3]&atEmptyPath != 0 && given == "")
		stat := syscall.Lstat
		if a[3]&atNoFollow == 0 {
			stat = syscall.Stat
		}
		st := p.(*syscall.Stat_t)
		err := errno(stat(real, st))
		v.stamp(st)
		return 0, err
	case syscall.SYS_READLINKAT:
		var b [4096]byte
		n, err := syscall.Readlink(v.seen(name, false), b[:])
		if err != nil {
			return 0, errno(err)
		}
		return uintptr(copy(data, v.inner(string(b[:n])))), 0
	case syscall.SYS_FACCESSAT, sysFaccessat2:
		return 0, errno(syscall.Access(v.seen(name, true), uint32(a[2])))
	case syscall.SYS_FCHMODAT, syscall.SYS_FCHOWNAT, syscall.SYS_UTIMENSAT:
		follow := trap == syscall.SYS_FCHMODAT || trap == syscall.SYS_FCHOWNAT && a[4]&atNoFollow == 0 || trap == syscall.SYS_UTIMENSAT && a[3]&atNoFollow == 0
		if v.onMachine(name, follow) {
			return 0, syscall.EROFS
		}
		f, err := v.find(name, follow)
		if err != 0 {
			return 0, err
		}
		switch trap {
		case syscall.SYS_FCHMODAT:
			f.Mode = uint32(a[2]) & 0o7777
			return 0, errno(syscall.Chmod(v.real(name), uint32(a[2])))
		case syscall.SYS_UTIMENSAT:
			v.setTime(f, p)
		}
		return 0, 0
	}
	return 0, syscall.ENOSYS // openat2, statx and mknodat, which package os does not use
}

// setTime executes a utimensat.
func (v *Volume) setTime(f *storage.File, p any) {
	const now, omit = 1<<30 - 1, 1<<30 - 2
	switch times, _ := p.(*[2]syscall.Timespec); {
	case times == nil || times[1].Nsec == now:
		f.Time = v.Now
	case times[1].Nsec != omit:
		f.Time = times[1].Nano()
	}
}

// seen returns the real path of a file for reading: on the node, or else on the machine.
func (v *Volume) seen(name string, follow bool) string {
	if v.onMachine(name, follow) {
		return name
	}
	return v.real(name)
}

// stamp sets the times in st to times of the World.
func (v *Volume) stamp(st *syscall.Stat_t) {
	if f := v.at[st.Ino]; f != nil && st.Dev == v.dev {
		t := syscall.NsecToTimespec(f.Time)
		st.Atim, st.Mtim, st.Ctim = t, t, t
	}
}

// space sets the figures in st to those of a disk of 1 TB that is empty or full. What the machine has left differs at each moment.
func (v *Volume) space(st *syscall.Statfs_t) {
	const blocks, files = 1 << 28, 1 << 26
	st.Bsize, st.Frsize, st.Blocks, st.Files = 4096, 4096, blocks, files
	if st.Bfree, st.Bavail, st.Ffree = blocks, blocks, files; v.Full {
		st.Bfree, st.Bavail, st.Ffree = 0, 0, 0
	}
}

// byPath executes a call with a path and without a descriptor.
func (v *Volume) byPath(trap uintptr, name string, size int64, p any) syscall.Errno {
	switch trap {
	case syscall.SYS_CHDIR:
		var st syscall.Stat_t
		err := errno(syscall.Stat(v.seen(name, true), &st))
		switch {
		case err != 0:
			return err
		case st.Mode&syscall.S_IFMT != syscall.S_IFDIR:
			return syscall.ENOTDIR
		}
		v.dir = name
		return 0
	case syscall.SYS_STATFS:
		st := p.(*syscall.Statfs_t)
		err := errno(syscall.Statfs(v.seen(name, true), st))
		v.space(st)
		return err
	}
	if v.onMachine(name, true) {
		return syscall.EROFS
	}
	f, err := v.find(name, true)
	if err != 0 {
		return err
	}
	return v.truncate(f, name, size, func() error { return syscall.Truncate(v.real(name), size) })
}

// at2 executes a call with two paths.
func (v *Volume) at2(trap uintptr, from, to string, flags uintptr) syscall.Errno {
	if trap != syscall.SYS_LINKAT {
		switch {
		case trap == syscall.SYS_RENAMEAT || flags == 0:
		case flags != noReplace:
			return syscall.EINVAL
		default:
			if _, err := v.find(to, false); err == 0 {
				return syscall.EEXIST
			}
		}
		return v.rename(from, to)
	}
	f, err := v.find(from, flags&atFollow != 0)
	if err != 0 {
		return err
	}
	if v.Full {
		return syscall.ENOSPC
	}
	if err := v.retry(to, func() error { return syscall.Link(v.real(from), v.real(to)) }); err != 0 {
		return err
	}
	in, base := v.place(to)
	v.Disk.Link(in, base, f)
	v.changed(in, "link "+from+" "+to, 0)
	return 0
}

// byHandle executes a call for an open file of the node.
func (v *Volume) byHandle(trap uintptr, fd int, h *handle, a *[6]uintptr, data []byte, p any) (r uintptr, err syscall.Errno, w Wait) {
	switch trap {
	case syscall.SYS_READ, syscall.SYS_PREAD64:
		off := int64(a[3])
		if trap == syscall.SYS_READ {
			off, _ = syscall.Seek(fd, 0, 1)
		}
		if end := min(h.f.Size(), off+int64(len(data))); !h.f.IsFolder() && off < end {
			v.Rots(fd, h.f, h.name, off, end)
		}
		r, err = onMachineFile(trap, fd, a, data, p)
	case syscall.SYS_WRITE:
		return v.writeAt(fd, h, data, -1)
	case syscall.SYS_PWRITE64:
		if int64(a[3]) < 0 {
			return 0, syscall.EINVAL, w
		}
		return v.writeAt(fd, h, data, int64(a[3]))
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		return 0, 0, Wait{Name: h.name, Sync: h.f}
	case sysSyncfs:
		return 0, 0, Wait{Name: "/", All: true}
	case syscall.SYS_SYNC_FILE_RANGE: // the call promises nothing
	case syscall.SYS_FTRUNCATE:
		err = v.truncate(h.f, h.name, int64(a[1]), func() error { return syscall.Ftruncate(fd, int64(a[1])) })
	case syscall.SYS_FALLOCATE:
		const keepSize = 1
		end := int64(a[2] + a[3])
		switch {
		case a[1]&^keepSize != 0:
			err = syscall.EOPNOTSUPP
		case end > h.f.Size() && v.Full:
			err = syscall.ENOSPC
		case end > h.f.Size() && a[1] == 0:
			err = v.truncate(h.f, h.name, end, func() error { return syscall.Ftruncate(fd, end) })
		}
	case syscall.SYS_FSTAT:
		st := p.(*syscall.Stat_t)
		err = errno(syscall.Fstat(fd, st))
		v.stamp(st)
	case syscall.SYS_FSTATFS:
		st := p.(*syscall.Statfs_t)
		err = errno(syscall.Fstatfs(fd, st))
		v.space(st)
	case syscall.SYS_FCHMOD:
		h.f.Mode = uint32(a[1]) & 0o7777
		err = errno(syscall.Fchmod(fd, uint32(a[1])))
	case syscall.SYS_FCHOWN:
	case syscall.SYS_FLOCK:
		err = errno(syscall.Flock(fd, int(a[1])|syscall.LOCK_NB))
		if err == syscall.EWOULDBLOCK && a[1]&syscall.LOCK_NB == 0 {
			w = Wait{Name: h.name, Again: true}
		}
	case syscall.SYS_FCNTL:
		return v.fcntl(fd, h, a, p)
	case syscall.SYS_MMAP:
		const shared = 3 // MAP_SHARED, MAP_SHARED_VALIDATE and MAP_PRIVATE
		r, _, err = syscall.RawSyscall6(trap, a[4], a[1], a[2], a[3], a[0], a[5])
		if err == 0 && a[3]&shared != syscall.MAP_PRIVATE && a[2]&syscall.PROT_WRITE != 0 {
			look, e := syscall.Open(fdLink(fd), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			if e != nil {
				return 0, errno(e), w
			}
			v.maps = append(v.maps, &mapping{at: r, size: a[1], f: h.f, name: h.name, look: look})
		}
	case sysCopyFileRange:
		err = syscall.ENOSYS // package os then reads and writes
	case syscall.SYS_SENDFILE, syscall.SYS_SPLICE, syscall.SYS_WRITEV, syscall.SYS_PWRITEV, syscall.SYS_READV, syscall.SYS_PREADV:
		err = syscall.EINVAL
	default:
		r, err = onMachineFile(trap, fd, a, data, p)
	}
	return r, err, w
}

// onMachineFile makes a call for a descriptor as it is.
func onMachineFile(trap uintptr, fd int, a *[6]uintptr, data []byte, p any) (uintptr, syscall.Errno) {
	n, err := 0, error(nil)
	switch trap {
	case syscall.SYS_READ:
		n, err = syscall.Read(fd, data)
	case syscall.SYS_PREAD64:
		n, err = syscall.Pread(fd, data, int64(a[3]))
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		err = syscall.EBADF
	case syscall.SYS_GETDENTS64:
		n, err = syscall.ReadDirent(fd, data)
	case syscall.SYS_FSTAT:
		err = syscall.Fstat(fd, p.(*syscall.Stat_t))
	case syscall.SYS_FSTATFS:
		err = syscall.Fstatfs(fd, p.(*syscall.Statfs_t))
	case syscall.SYS_FCHDIR:
		err = syscall.EACCES
	case syscall.SYS_DUP, syscall.SYS_DUP3:
		return dup(trap, handleOf(fd), a)
	case syscall.SYS_MMAP:
		r, _, err := syscall.RawSyscall6(trap, a[4], a[1], a[2], a[3], a[0], a[5])
		return r, err
	default:
		if lock, ok := p.(*syscall.Flock_t); ok && lock != nil {
			return 0, errno(syscall.FcntlFlock(uintptr(fd), int(a[1]), lock))
		}
		r, _, err := syscall.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
		return r, err
	}
	return uintptr(max(n, 0)), errno(err)
}

func dup(trap uintptr, h *handle, a *[6]uintptr) (uintptr, syscall.Errno) {
	r, _, err := syscall.RawSyscall6(trap, a[0], a[1], a[2], 0, 0, 0)
	if err == 0 {
		opened(int(r), h)
	}
	return r, err
}

func (v *Volume) fcntl(fd int, h *handle, a *[6]uintptr, p any) (uintptr, syscall.Errno, Wait) {
	lock, _ := p.(*syscall.Flock_t)
	switch cmd := int(a[1]); {
	case cmd == syscall.F_DUPFD || cmd == dupFD:
		r, err := dup(syscall.SYS_FCNTL, h, a)
		return r, err, Wait{}
	case lock == nil:
		r, _, err := syscall.RawSyscall(syscall.SYS_FCNTL, a[0], a[1], a[2])
		if err == 0 && cmd == syscall.F_SETFL {
			h.append = a[2]&syscall.O_APPEND != 0
		}
		return r, err, Wait{}
	default:
		waits := cmd == syscall.F_SETLKW || cmd == setLockWait
		if waits {
			cmd-- // F_SETLK, F_OFD_SETLK
		}
		err := errno(syscall.FcntlFlock(uintptr(fd), cmd, lock))
		return 0, err, Wait{Name: h.name, Again: waits && (err == syscall.EAGAIN || err == syscall.EACCES)}
	}
}

// memory executes a call for memory, if the memory belongs to a mapping.
func (v *Volume) memory(trap uintptr, a *[6]uintptr) (r uintptr, err syscall.Errno, done bool, w Wait) {
	for i, m := range v.maps {
		if a[0] < m.at || a[0] >= m.at+m.size {
			continue
		}
		if trap == syscall.SYS_MSYNC {
			return 0, 0, true, Wait{Name: m.name, Sync: m.f}
		}
		v.observeBy(m.look, m.f)
		r, _, err = syscall.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], 0)
		switch {
		case err != 0:
		case trap == syscall.SYS_MREMAP:
			m.at, m.size = r, a[2]
		case a[0] == m.at && a[1] >= m.size:
			_ = syscall.Close(m.look)
			v.maps = append(v.maps[:i:i], v.maps[i+1:]...)
		}
		return r, err, true, w
	}
	return 0, 0, false, w
}
