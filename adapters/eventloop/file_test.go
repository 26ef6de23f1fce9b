package eventloop_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/suspend"
)

// eachFile runs body with a Loop whose Files use rings, if the system has them, and with a Loop without rings.
func eachFile(t *testing.T, o eventloop.Options, body func(t *testing.T, l *eventloop.Loop)) {
	for _, kind := range []string{"ring", "refused"} {
		t.Run(kind, func(t *testing.T) {
			l := open(t, o)
			if kind == "refused" {
				eventloop.RefuseRings(l)
			}
			body(t, l)
		})
	}
}

// written returns the name of a new file with the given content.
func written(t testing.TB, content string) (name string) {
	name = filepath.Join(t.TempDir(), "name")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

// A stockFile has the methods of both a File and an os.File.
type stockFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
	Name() string
}

var (
	_ stockFile = (*eventloop.File)(nil)
	_ stockFile = (*os.File)(nil)
)

// outcomesOf calls all methods of a file, and returns their results as text.
func outcomesOf(t *testing.T, name string, flag int, open func(name string, flag int, perm os.FileMode) (stockFile, error)) (all []any) {
	add := func(n any, err error) {
		text := "" // without deadlines, which need the runtime's poller
		if err != nil {
			text = err.Error()
		}
		all = append(all, n, text)
	}
	f, err := open(name, flag, 0o640)
	if add(0, err); err != nil {
		return all
	}
	size := func() (int64, error) {
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size() * int64(info.Mode()), nil
	}
	read := func(n int, off int64) {
		p := make([]byte, n)
		m, err := f.ReadAt(p, off)
		add(m, err)
		all = append(all, strings.TrimRight(string(p), "\x00"))
	}
	read(3, 0)
	read(3, 4)
	read(100, 2)
	read(0, 2)
	read(3, 1000)
	read(3, -1)
	add(f.WriteAt([]byte("written"), 5))
	add(f.WriteAt([]byte("x"), 20_000))
	add(f.WriteAt(nil, 1))
	add(f.WriteAt([]byte("y"), -1))
	read(30_000, 1)
	add(0, f.Sync())
	add(size())
	all = append(all, f.Name())
	add(0, f.Close())
	add(0, f.Close())
	read(1, 0)
	add(f.WriteAt([]byte("z"), 0))
	add(0, f.Sync())
	add(size())
	return all
}

// A File has the same results and errors as an os.File, in all methods that both have.
func TestAFileIsAnOSFile(t *testing.T) {
	o := eventloop.Options{Loops: 2}
	eachFile(t, o, func(t *testing.T, l *eventloop.Loop) {
		dir := t.TempDir()
		name := filepath.Join(dir, "name")
		callers := map[string]func(func()){"goroutine": func(f func()) { f() }, "task": func(f func()) { task(t, l, f) }}
		for caller, in := range callers {
			for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_TRUNC, os.O_CREATE | os.O_EXCL} {
				for _, of := range []string{name, filepath.Join(dir, "none"), dir} {
					both := [2][]any{}
					for i, opens := range []func(string, int, os.FileMode) (stockFile, error){
						func(name string, flag int, perm os.FileMode) (stockFile, error) {
							return os.OpenFile(name, flag, perm)
						},
						func(name string, flag int, perm os.FileMode) (stockFile, error) {
							return l.OpenFile(name, flag, perm)
						},
					} {
						_ = os.Remove(filepath.Join(dir, "none"))
						require.NoError(t, os.WriteFile(name, []byte("0123456789"), 0o600))
						in(func() { both[i] = outcomesOf(t, of, flag, opens) })
					}
					require.Equal(t, both[0], both[1], "%s, flags %#x, %s", caller, flag, of)
				}
			}
		}
	})
}

// Tasks of all schedulers read files.
func TestFileFromAnyScheduler(t *testing.T) {
	eachFile(t, eventloop.Options{Loops: 2}, func(t *testing.T, l *eventloop.Loop) {
		text := strings.Repeat("0123456789", 1000)
		name := written(t, text)
		schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
			f := must(l.Open(name))
			read := func() {
				for off := range int64(20) {
					p := make([]byte, 5000)
					n, err := f.ReadAt(p, off)
					if err != nil || string(p[:n]) != text[off:][:5000] {
						t.Error(n, err)
					}
				}
			}
			schedtest.Run(t, s, read, read, read)
			require.NoError(t, f.Close())
		})
	})
}

// A reactor that is idle sleeps, and wakes up for the operations of goroutines.
func TestFileOfGoroutines(t *testing.T) {
	eachFile(t, eventloop.Options{}, func(t *testing.T, l *eventloop.Loop) {
		name := written(t, "0123456789")
		f := must(l.Open(name))
		defer f.Close()
		for _, n := range []int{1, 2, 3} {
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					for range 1000 {
						p := make([]byte, 10)
						if _, err := f.ReadAt(p, 0); err != nil || string(p) != "0123456789" {
							t.Errorf("%q, %v", p, err)
						}
					}
				})
			}
			within(t, all.Wait)
		}
	})
}

// In a callback, which must not suspend, no operation begins.
func TestFileInACallback(t *testing.T) {
	eachFile(t, eventloop.Options{}, func(t *testing.T, l *eventloop.Loop) {
		name := written(t, "0123456789")
		f := must(l.OpenFile(name, os.O_RDWR, 0))
		done := make(chan struct{})
		require.NoError(t, l.Execute(func() {
			defer close(done)
			for what, op := range map[string]func(){
				"ReadAt":  func() { _, _ = f.ReadAt(make([]byte, 1), 0) },
				"WriteAt": func() { _, _ = f.WriteAt([]byte("x"), 0) },
				"Close":   func() { _ = f.Close() },
			} {
				func() {
					defer func() {
						if recover() == nil {
							t.Error(what + " did not panic")
						}
					}()
					op()
				}()
			}
		}))
		within(t, func() { <-done })
		p := make([]byte, 1)
		must(f.ReadAt(p, 0))
		require.Equal(t, "0", string(p))
		require.NoError(t, f.Close())
	})
}

// A File can be used during and after the Close of its Loop.
func TestFileOutlivesItsLoop(t *testing.T) {
	eachFile(t, eventloop.Options{Loops: 2}, func(t *testing.T, l *eventloop.Loop) {
		text := strings.Repeat("0123456789", 10_000)
		name := written(t, text)
		f := must(l.Open(name))
		var all sync.WaitGroup
		var reads atomic.Int64
		closed := make(chan struct{})
		for i := range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for n, after := 0, 0; after < 10; n++ {
					select {
					case <-closed:
						after++
					default:
					}
					p := make([]byte, 1000)
					off := int64(n*17%90_000) + int64(i)
					if _, err := f.ReadAt(p, off); err != nil || string(p) != text[off:][:1000] {
						t.Error(err)
						return
					}
					reads.Add(1)
				}
			}()
		}
		for reads.Load() < 100 {
			runtime.Gosched()
		}
		within(t, func() { require.NoError(t, l.Close()) })
		close(closed)
		within(t, all.Wait)
		require.NoError(t, f.Close())
		again := must(l.Open(name))
		p := make([]byte, 10)
		must(again.ReadAt(p, 10))
		require.Equal(t, "0123456789", string(p))
		require.NoError(t, again.Close())
	})
}

// A Close waits for the operations that are under way. Each operation either succeeds or does not begin.
func TestFileCloseRaces(t *testing.T) {
	eachFile(t, eventloop.Options{Loops: 2}, func(t *testing.T, l *eventloop.Loop) {
		text := strings.Repeat("0123456789", 10_000)
		name := written(t, text)
		outcomes := stress.Of("read", "closed")
		stress.Rounds(t, outcomes, func() {
			f := must(l.Open(name))
			var all sync.WaitGroup
			var closes atomic.Int64
			for i := range 20 {
				all.Add(1)
				must(0, l.Go(func() {
					defer all.Done()
					for n := range 20 {
						p := make([]byte, 1000)
						switch _, err := f.ReadAt(p, int64(i*1000)); {
						case err == nil && string(p) == text[:1000]:
							outcomes.Add("read")
						case errors.Is(err, os.ErrClosed):
							outcomes.Add("closed")
						default:
							t.Error(err)
						}
						if n == i {
							if err := f.Close(); err == nil {
								closes.Add(1)
							} else if !errors.Is(err, os.ErrClosed) {
								t.Error(err)
							}
							if i%2 == 0 { // the number may already belong to another file
								g := must(os.Open(os.DevNull))
								runtime.Gosched()
								must(0, g.Close())
							}
						}
					}
				}))
			}
			within(t, all.Wait)
			require.EqualValues(t, 1, closes.Load())
		})
	})
}

const stormBlock = 4096

// direct is the flag with which reads and writes bypass the page cache, so that they take time.
var direct int

func alignedBlock() []byte {
	b := make([]byte, 2*stormBlock)
	off := stormBlock - int(uintptr(unsafe.Pointer(&b[0]))%stormBlock)
	return b[off : off+stormBlock]
}

// Tasks of all schedulers write blocks, read them and compare, and their operations are cancelled at any time. When an operation
// returns, whatever its result, the buffer belongs to the caller again. In the end, the file has all written blocks.
func TestFileStorm(t *testing.T) {
	eachFile(t, eventloop.Options{Loops: 2, HandOver: time.Millisecond, StallAfter: -1}, func(t *testing.T, l *eventloop.Loop) {
		outcomes := stress.Of("write", "write cancelled", "read", "read cancelled", "sync")
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		defer schedtest.Within(t, max(schedtest.Deadline, 3*stress.For(t)))()
		seed := rand.Uint64()
		t.Log("seed", seed)
		stress.Rounds(t, outcomes, func() {
			seed++
			fileStorm(t, l, outcomes, seed)
		})
		within(t, func() { require.NoError(t, l.Close()) })
	})
}

func fileStorm(t *testing.T, l *eventloop.Loop, outcomes *stress.Outcomes, seed uint64) {
	const writers, blocks, steps = 40, 10, 10 // each step may wait for the disk many times
	name := filepath.Join(t.TempDir(), "name")
	f, err := l.OpenFile(name, os.O_RDWR|os.O_CREATE|direct, 0o600)
	if err != nil {
		f = must(l.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600))
	}
	var content [writers * blocks][sha256.Size]byte
	var all sync.WaitGroup
	ended := make(chan struct{})
	churned := make(chan struct{})
	go func() { // makes threads end on which operations may have been submitted
		defer close(churned)
		for {
			select {
			case <-ended:
				return
			default:
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					runtime.LockOSThread()
				}()
				<-gone
				time.Sleep(100 * time.Microsecond) // otherwise a single processor would only begin and end threads
			}
		}
	}()
	for w := range writers {
		all.Add(1)
		writer := func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			fill := rand.NewChaCha8([32]byte{byte(seed), byte(w)})
			p, q := alignedBlock(), alignedBlock()
			try := func(what string, op func(f *eventloop.File) (int, error)) bool {
				ctx, cancel := context.Background(), func() {}
				if random.IntN(2) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(random.Int64N(int64(500*time.Microsecond))))
				}
				defer cancel()
				switch n, err := op(f.WithContext(ctx)); {
				case err == nil && n == stormBlock:
					outcomes.Add(what)
					return true
				case errors.Is(err, context.DeadlineExceeded):
					outcomes.Add(what + " cancelled")
				default:
					t.Error(what, n, err)
				}
				return false
			}
			for range steps {
				i := w*blocks + random.IntN(blocks)
				off := int64(i) * stormBlock
				_, _ = fill.Read(p)
				hash := sha256.Sum256(p)
				for !try("write", func(f *eventloop.File) (int, error) { return f.WriteAt(p, off) }) {
				}
				content[i] = hash
				clear(p) // the buffer is the caller's again
				for !try("read", func(f *eventloop.File) (int, error) { return f.ReadAt(q, off) }) {
					for j := range q { // no late read may change the buffer
						q[j] = byte(w)
					}
					if random.IntN(2) == 0 {
						suspend.Yield()
						if random.IntN(20) == 0 {
							time.Sleep(2 * time.Millisecond) // causes a hand-over
						}
					}
					if n := bytes.Count(q, []byte{byte(w)}); n != stormBlock {
						t.Errorf("%d bytes were written after the end of a read", stormBlock-n)
					}
				}
				if sha256.Sum256(q) != hash {
					t.Errorf("block %d is not what was written", i)
				}
				if random.IntN(10) == 0 {
					try("sync", func(f *eventloop.File) (int, error) { return stormBlock, f.Sync() })
				}
			}
		}
		if w%4 == 0 {
			go writer()
		} else {
			must(0, l.Go(writer))
		}
	}
	all.Wait()
	close(ended)
	<-churned
	must(0, f.Close())
	g := must(os.Open(name))
	defer g.Close()
	for i, want := range content {
		p := make([]byte, stormBlock)
		if want == [sha256.Size]byte{} {
			continue
		}
		must(g.ReadAt(p, int64(i)*stormBlock))
		if sha256.Sum256(p) != want {
			t.Errorf("block %d is not what was written", i)
		}
	}
}
