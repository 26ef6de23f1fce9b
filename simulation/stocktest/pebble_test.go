package stocktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
)

// A vdisk is a vfs.FS. Its folders are prefixes of names.
//
// After a crash a call of the disk ends its goroutine. In pebble a deferred Unlock then meets an open mutex, and an error is a
// panic. So each call has a goroutine of its own. After the crash, an operation that changes the disk succeeds without effect, and a
// read waits for ever.
type vdisk struct {
	vfs.FS // nil, because pebble calls only the methods below
	fs     disk.FS
}

// A file is a vfs.File: an open file, or a folder.
type file struct {
	vdisk
	name string
	f    disk.File
	off  int64
}

// do calls f, which changes the disk.
func do(f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = f()
	}()
	<-done
	return err
}

// read calls f, which reads from the disk.
func read[T any](f func() (T, error)) (v T, err error) {
	lives := false
	_ = do(func() error { v, err = f(); lives = true; return nil })
	if !lives {
		select {}
	}
	return v, err
}

func (d vdisk) open(name string) (vfs.File, error) {
	f, err := read(func() (disk.File, error) { return d.fs.Open(name) })
	if err != nil {
		return nil, err
	}
	return &file{vdisk: d, name: name, f: f}, nil
}

func (d vdisk) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	f := &file{vdisk: d, name: name}
	return f, do(func() (err error) { f.f, err = d.fs.Create(name); return err })
}

func (d vdisk) ReuseForWrite(from, to string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	f := &file{vdisk: d, name: to}
	return f, do(func() (err error) {
		if err = d.fs.Rename(from, to); err == nil {
			f.f, err = d.fs.Open(to)
		}
		return err
	})
}

func (d vdisk) List(dir string) (names []string, err error) {
	all, err := read(d.fs.Names)
	for _, n := range all {
		if path.Dir(n) == path.Clean(dir) {
			names = append(names, path.Base(n))
		}
	}
	return names, err
}

func (d vdisk) Stat(name string) (vfs.FileInfo, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	return f.Stat()
}

func (d vdisk) Open(name string, _ ...vfs.OpenOption) (vfs.File, error) { return d.open(name) }
func (d vdisk) OpenDir(name string) (vfs.File, error)                   { return &file{vdisk: d, name: name}, nil }
func (d vdisk) Remove(name string) error                                { return do(func() error { return d.fs.Remove(name) }) }
func (d vdisk) Rename(from, to string) error {
	return do(func() error { return d.fs.Rename(from, to) })
}
func (d vdisk) MkdirAll(string, os.FileMode) error { return nil }
func (d vdisk) Lock(string) (io.Closer, error)     { return io.NopCloser(nil), nil }
func (d vdisk) PathBase(name string) string        { return path.Base(name) }
func (d vdisk) PathDir(name string) string         { return path.Dir(name) }
func (d vdisk) PathJoin(parts ...string) string    { return path.Join(parts...) }
func (d vdisk) Unwrap() vfs.FS                     { return nil }

func (d vdisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}, nil
}

// live ends the goroutine if the file was created before a crash.
func (f *file) live() disk.File {
	if f.f == nil {
		runtime.Goexit()
	}
	return f.f
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	return read(func() (int, error) { return f.live().ReadAt(p, off) })
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return len(p), do(func() error { _, err := f.live().WriteAt(p, off); return err })
}

func (f *file) Write(p []byte) (int, error) {
	f.off += int64(len(p))
	return f.WriteAt(p, f.off-int64(len(p)))
}

func (f *file) Sync() error {
	return do(func() error {
		if f.f == nil {
			return f.fs.Sync()
		}
		return f.f.Sync()
	})
}

func (f *file) Stat() (vfs.FileInfo, error) {
	size, err := read(func() (int64, error) { return f.live().Size() })
	return info{f.name, size}, err
}

func (f *file) Close() error                 { return nil }
func (f *file) Preallocate(_, _ int64) error { return nil }
func (f *file) SyncTo(int64) (bool, error)   { return false, nil }
func (f *file) SyncData() error              { return f.Sync() }
func (f *file) Prefetch(_, _ int64) error    { return nil }
func (f *file) Fd() uintptr                  { return vfs.InvalidFd }

type info struct {
	name string
	size int64
}

func (i info) Name() string           { return path.Base(i.name) }
func (i info) Size() int64            { return i.size }
func (i info) Mode() os.FileMode      { return 0o666 }
func (i info) ModTime() time.Time     { return time.Time{} }
func (i info) IsDir() bool            { return false }
func (i info) Sys() any               { return nil }
func (i info) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

type logger struct{ w *world }

func (logger) Infof(string, ...any)              {}
func (logger) Errorf(string, ...any)             {}
func (l logger) Fatalf(text string, args ...any) { l.w.Log(text, args...); runtime.Goexit() }

// A bank is a database with all acknowledged writes.
type bank struct {
	w     *world
	mu    sync.Mutex
	acked map[string][]byte
}

func (b *bank) open(h *simulation.Host) (*pebble.DB, error) {
	return pebble.Open("db", &pebble.Options{FS: vdisk{fs: h.FS()}, Logger: logger{b.w}, MemTableSize: 64 << 10, L0CompactionThreshold: 2, CacheSize: 1 << 20})
}

// check looks for all acknowledged writes.
func (b *bank) check(db *pebble.DB) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, want := range b.acked {
		got, closer, err := db.Get([]byte(key))
		if err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("%s was acknowledged, and is gone: %v", key, err)
		}
		_ = closer.Close()
	}
	return nil
}

// crashes opens a database, checks it, and writes until the node crashes, six times. Meanwhile pebble flushes and compacts. With
// more writers, a seed repeats only on a quiet machine: they wait for locks of pebble, and a sync.Mutex changes its order after 1
// ms of real time.
func crashes(forgets bool) func(ctx context.Context, w *world) error {
	return func(_ context.Context, w *world) error {
		w.SetFaults(simulation.Faults{MaxSync: 5 * time.Millisecond})
		b, n, draw := &bank{w: w, acked: map[string][]byte{}}, w.Node("bank"), w.Rand()
		sync := pebble.Sync
		if forgets {
			sync = pebble.NoSync
		}
		for round := range 6 {
			opened := make(chan error, 1)
			n.Start(func(ctx context.Context, h *simulation.Host) {
				db, err := b.open(h)
				if err == nil {
					err = b.check(db)
				}
				opened <- err
				for k := 0; err == nil; k++ {
					time.Sleep(time.Millisecond)
					key, value := fmt.Sprint(round, " ", k), bytes.Repeat([]byte{byte(round), byte(k)}, 1000)
					if err = db.Set([]byte(key), value, sync); err != nil || ctx.Err() != nil { // because of a crash
						return
					}
					b.mu.Lock()
					b.acked[key] = value
					b.mu.Unlock()
				}
			})
			if err := <-opened; err != nil {
				return err
			}
			time.Sleep(time.Duration(draw.IntN(300)) * time.Millisecond)
			n.Crash()
		}
		done := make(chan error, 1)
		n.Start(func(_ context.Context, h *simulation.Host) {
			db, err := b.open(h)
			if err == nil {
				err = b.check(db)
			}
			if err == nil {
				err = db.Close()
			}
			done <- err
		})
		return <-done
	}
}

func TestPebble(t *testing.T) { run(t, 20, crashes(false)) }

// TestPebbleFails fails. TestPebbleForgets runs it in another process.
func TestPebbleFails(t *testing.T) {
	if fails() {
		run(t, 300, crashes(true))
	}
}

// A write without a sync is lost.
func TestPebbleForgets(t *testing.T) {
	if line := found(t, "TestPebbleFails"); !strings.Contains(line, "was acknowledged, and is gone") {
		t.Fatal(line)
	}
}
