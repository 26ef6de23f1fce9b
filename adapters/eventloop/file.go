package eventloop

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A File is an open file of a Loop. Its methods may be called concurrently, from tasks of any scheduler and from plain
// goroutines. Each but Stat may suspend its caller, and so panics in a callback.
//
// On Linux 5.6 and later ReadAt, WriteAt and Sync of regular files and block devices go through io_uring, and OpenFile
// from 5.12 on. They use the ring of the caller's reactor if the caller is a task of the Loop; otherwise the reactors
// take turns. Once per turn a reactor submits all operations that were queued. At most 256 operations of a reactor are
// under way, and further operations wait in order. Where the system refuses io_uring, and for all other files, each
// operation is a suspend.Blocking. But Stat is a system call at once, and so is the Close of a small file that is only
// read.
//
// Tasks that wait for a disk are served best. A read that finds its bytes in the cache of the system costs a goroutine less with an os.File.
//
// A File outlives its Loop: once the Loop has been closed, no operation goes through io_uring. Errors are as with
// os.File.
type File struct {
	*file
	cs contexts
}

type file struct {
	os     *os.File
	loop   *Loop
	sys    int  // the descriptor; -1 means that the file is not for a ring
	flag   int  // the caller's flags
	small  bool // says that the file is regular and small
	uses   countdown
	closed bool // under the guard of uses
}

// The operations of a ring, as io_uring numbers them.
const (
	opFsync  uint8 = 3
	opOpenAt uint8 = 18
	opRead   uint8 = 22
	opWrite  uint8 = 23
)

// errRefused says that an operation is to be done without a ring. It has had no effect.
var errRefused = errors.New("eventloop: no ring")

// Open is OpenFile for reading.
func (l *Loop) Open(name string) (*File, error) { return l.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file as os.OpenFile does. It suspends the caller. On Linux it does not wait for the other end of a
// FIFO; use [Loop.Adopt] for FIFOs. The first OpenFile makes a ring on each reactor. OpenFile fails if there are no
// descriptors left.
func (l *Loop) OpenFile(name string, flag int, perm fs.FileMode) (*File, error) {
	if err := l.makeRings(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := &file{loop: l, sys: -1, flag: flag}
	var err error
	if f.os, err = l.openViaRing(name, flag, perm); err == errRefused {
		if e := suspend.Blocking(context.Background(), func() { f.os, err = openOutside(name, flag, perm) }); e != nil {
			return nil, e
		}
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.os.Stat(); err == nil && (info.Mode().IsRegular() || info.Mode().Type() == fs.ModeDevice) {
		f.sys = int(f.os.Fd()) // Fd makes the descriptor blocking
		f.small = info.Mode().IsRegular() && info.Size() <= 1<<20
	}
	return &File{file: f}, nil
}

// openOutside does not wait for the other end of a FIFO. It waits for whoever has a lease of the file.
func openOutside(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|noWait, perm)
	if noWait != 0 && flag&noWait == 0 && errors.Is(err, syscall.EAGAIN) {
		return os.OpenFile(name, flag, perm)
	}
	return f, err
}

// WithContext returns f with its operations bound to ctx, as [WithContext] does for a net.Conn: once ctx is done,
// ReadAt, WriteAt, Sync and Stat fail with the error of the cancellation. An operation that is queued fails at once. An
// operation that was submitted may write to the buffer until it is over, so its caller must wait until the system has
// stopped it. If it has succeeded by then, its result is returned. The File that is returned is the same file: a Close
// closes both.
func (f *File) WithContext(ctx context.Context) *File {
	return &File{f.file, append(contexts{ctx}, f.cs...)}
}

// Name returns the name that was given to Open.
func (f *File) Name() string { return f.os.Name() }

// ReadAt reads len(p) bytes from offset off on. It returns fewer only with an error, which is io.EOF at the end of the file. The buffer is the
// caller's again when it returns.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	return f.transfer("read", opRead, p, off, f.os.ReadAt)
}

// WriteAt writes p from offset off on. If it fails, n bytes have been written, and some more may have been. As with an
// os.File, WriteAt fails if the file was opened with O_APPEND.
func (f *File) WriteAt(p []byte, off int64) (n int, err error) {
	if f.flag&os.O_APPEND != 0 {
		return f.os.WriteAt(p, off) // has the error
	}
	return f.transfer("write", opWrite, p, off, f.os.WriteAt)
}

func (f *File) transfer(name string, code uint8, p []byte, off int64, stock func([]byte, int64) (int, error)) (n int, err error) {
	if off < 0 {
		return stock(p, off) // has the error
	}
	if err := f.begin(name); err != nil {
		return 0, err
	}
	defer f.uses.done()
	for n < len(p) {
		m, err := f.viaRing(code, p[n:], off+int64(n))
		switch {
		case err == errRefused:
			err := f.blocking(name, func() (err error) {
				m, err = stock(p[n:], off+int64(n))
				return err
			})
			return n + m, err
		case err != nil:
			return n, f.failed(name, err)
		case m == 0 && code == opRead:
			return n, io.EOF
		case m == 0:
			return n, f.failed(name, io.ErrUnexpectedEOF)
		}
		n += m
	}
	return n, nil
}

// Sync commits the file to stable storage, as fsync does.
func (f *File) Sync() error {
	if err := f.begin("sync"); err != nil {
		return err
	}
	defer f.uses.done()
	_, err := f.viaRing(opFsync, nil, 0)
	switch err {
	case nil:
		return nil
	case errRefused:
		return f.blocking("sync", f.os.Sync)
	}
	return f.failed("sync", err)
}

// Stat describes the file. The system is asked at once: it keeps the description of an open file in memory, but may
// have to query the server of a network file.
func (f *File) Stat() (info fs.FileInfo, err error) {
	if err := f.begin("stat"); err != nil {
		return nil, err
	}
	defer f.uses.done()
	return f.os.Stat()
}

// Close makes all later operations fail with os.ErrClosed, waits for those under way, and closes the file. The first of several Closes returns
// the error of the system, if there is one.
func (f *File) Close() error {
	suspend.Self() // panics in a callback, before anything is closed
	f.uses.guard.Lock()
	first := !f.closed
	f.closed = true
	f.uses.guard.Unlock()
	if !first {
		return f.failed("close", os.ErrClosed)
	}
	f.uses.wait()
	if f.small && f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return f.os.Close() // there is nothing to be written, and little to be freed if the file has no name any more
	}
	unbound := File{file: f.file}
	return unbound.blocking("close", f.os.Close)
}

// begin keeps the descriptor open, up to uses.done.
func (f *File) begin(name string) error {
	if err := f.cs.err(); err != nil {
		return f.failed(name, err)
	}
	f.uses.guard.Lock()
	defer f.uses.guard.Unlock()
	if f.closed {
		return f.failed(name, os.ErrClosed)
	}
	f.uses.n++
	return nil
}

// blocking runs do, which returns the errors of an os.File.
func (f *File) blocking(name string, do func() error) error {
	ctx, stop := f.cs.join()
	if stop != nil {
		defer stop()
	}
	var err error
	if e := suspend.Blocking(ctx, func() { err = do() }); e != nil {
		return f.failed(name, f.cs.explain(e))
	}
	return err
}

func (f *File) failed(name string, err error) error {
	return &fs.PathError{Op: name, Path: f.Name(), Err: err}
}

// rings is the state that the rings of a Loop share.
type rings struct {
	mu   atomicx.Mutex
	made bool // says that the ring is made, or refused by the system
}
