//go:build amd64 || arm64

package volume

import (
	"bytes"
	"os"
	"syscall"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/storage"
)

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
	case v.Full && h.f.Fits(len(p), at) == 0:
		return 0, syscall.ENOSPC, Wait{}
	case v.Fails():
		return 0, syscall.EIO, Wait{}
	}
	if v.Full {
		p = p[:h.f.Fits(len(p), at)]
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
