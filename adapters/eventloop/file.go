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
// goroutines. The methods ReadAt, WriteAt, Sync and Close may suspend their caller, so they panic in a callback.
//
// On Linux 5.6 and later, ReadAt, WriteAt and Sync of regular files and block devices use io_uring. OpenFile does so
// from Linux 5.12 on. A task of the Loop uses the io_uring of its reactor; for other callers the reactors take turns.
// Once per turn, a reactor submits all queued operations. At most 256 operations of a reactor are under way, and
// further operations wait in order. All other files use suspend.Blocking for each operation, and so do all files if the
// system refuses io_uring. Only Stat and the Close of a small file that was opened for reading are direct system calls.
//
// A File is most useful for tasks that wait for a disk. For a goroutine, a read from the system's cache is cheaper with
// an os.File.
//
// A File remains usable after its Loop has been closed, but no operation uses io_uring then. Errors are the same as for
// an os.File.
type File struct {
	*file
	cs contexts
}

type file struct {
	os     *os.File
	loop   *Loop
	sys    int  // the descriptor, or -1 if the file cannot use a ring
	flag   int  // the flags passed to OpenFile
	small  bool // the file is regular and at most 1 MiB long
	uses   countdown
	closed bool // guarded by uses.guard
}

// These constants are opcodes of io_uring.
const (
	opFsync  uint8 = 3
	opOpenAt uint8 = 18
	opRead   uint8 = 22
	opWrite  uint8 = 23
)

// errRefused means that no ring has performed the operation, so that suspend.Blocking must be used.
var errRefused = errors.New("eventloop: no ring")

// Open calls OpenFile with os.O_RDONLY, to open a file for reading.
func (l *Loop) Open(name string) (*File, error) { return l.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file as os.OpenFile does. OpenFile suspends the caller. On Linux, it does not wait for the other end
// of a FIFO; use [Loop.Adopt] for FIFOs. The first OpenFile creates an io_uring for each reactor. OpenFile fails if the
// process has no descriptors left.
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

// openOutside opens a file without a ring. openOutside does not wait for the other end of a FIFO, but waits if another
// process holds a lease on the file.
func openOutside(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|noWait, perm)
	if noWait != 0 && flag&noWait == 0 && errors.Is(err, syscall.EAGAIN) {
		return os.OpenFile(name, flag, perm)
	}
	return f, err
}

// WithContext returns a File that shares f's open file, and whose operations are bound to ctx, as [WithContext] does
// for a net.Conn. Once ctx is done, ReadAt, WriteAt, Sync and Stat fail with the cancellation error. A queued operation
// fails immediately. A submitted operation may still use its buffer, so its caller waits until the system has stopped
// the operation. If the operation has succeeded by then, its result is returned. Closing one of the two Files closes
// the other, too.
func (f *File) WithContext(ctx context.Context) *File {
	return &File{f.file, append(contexts{ctx}, f.cs...)}
}

// Name returns the name that was passed to OpenFile.
func (f *File) Name() string { return f.os.Name() }

// ReadAt reads len(p) bytes, starting at offset off. ReadAt returns fewer bytes only with an error, which is io.EOF at
// the end of the file. The system does not write to p after ReadAt has returned.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	return f.transfer("read", opRead, p, off, f.os.ReadAt)
}

// WriteAt writes p, starting at offset off. If WriteAt fails, at least n bytes have been written. Like the method of
// os.File, WriteAt fails if the file was opened with O_APPEND.
func (f *File) WriteAt(p []byte, off int64) (n int, err error) {
	if f.flag&os.O_APPEND != 0 {
		return f.os.WriteAt(p, off) // fails, because of O_APPEND
	}
	return f.transfer("write", opWrite, p, off, f.os.WriteAt)
}

func (f *File) transfer(name string, code uint8, p []byte, off int64, stock func([]byte, int64) (int, error)) (n int, err error) {
	if off < 0 {
		return stock(p, off) // fails, because off is negative
	}
	if err := f.beginOp(name); err != nil {
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
	if err := f.beginOp("sync"); err != nil {
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

// Stat returns the file's description. It makes a direct system call. The system keeps the description of an open file
// in memory, but for a network file it may have to query the server.
func (f *File) Stat() (info fs.FileInfo, err error) {
	if err := f.beginOp("stat"); err != nil {
		return nil, err
	}
	defer f.uses.done()
	return f.os.Stat()
}

// Close makes all later operations fail with os.ErrClosed, waits for operations under way, and closes the file. The
// first of several calls returns the system's error, if there is one. The other calls fail with os.ErrClosed.
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
		return f.os.Close() // the call writes nothing, and frees little even if the file was deleted
	}
	unbound := File{file: f.file}
	return unbound.blocking("close", f.os.Close)
}

// beginOp keeps the descriptor open until f.uses.done is called.
func (f *File) beginOp(name string) error {
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

// blocking runs the function do in suspend.Blocking, and returns its error unchanged.
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

// rings guards the creation of a Loop's rings.
type rings struct {
	mu   atomicx.Mutex
	made bool // the rings were created, or the system has refused io_uring
}
