package eventloop_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

func certificate() tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"test"}}
	return tls.Certificate{Certificate: [][]byte{must(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))}, PrivateKey: key}
}

func TestStockTLS(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	config := &tls.Config{Certificates: []tls.Certificate{certificate()}}
	go ln.Serve(context.Background(), func(_ context.Context, c net.Conn) {
		s := tls.Server(c, config)
		_, _ = io.Copy(s, s)
	})
	const conns = 20
	done := make(chan error, conns)
	for range conns {
		must(0, l.Go(func() {
			done <- func() error {
				raw, err := l.Dial(context.Background(), "tcp", ln.Addr().String())
				if err != nil {
					return err
				}
				c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
				defer c.Close()
				msg := bytes.Repeat([]byte(raw.LocalAddr().String()), 5000)
				if err := l.Go(func() {}); err != nil {
					return err
				}
				for range 3 {
					// One task writes and reads, half of a message at a time.
					if _, err := c.Write(msg[:8000]); err != nil {
						return err
					}
					got := make([]byte, 8000)
					if _, err := io.ReadFull(c, got); err != nil {
						return err
					}
					if !bytes.Equal(got, msg[:8000]) {
						return errors.New("not what was sent")
					}
				}
				return nil
			}()
		}))
	}
	within(t, func() {
		for range conns {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestOnlyTheTaskIsSuspended(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	task(t, l, func() {
		read := make(chan struct{})
		must(0, l.Go(func() {
			defer close(read)
			if _, err := io.ReadFull(a, make([]byte, 3)); err != nil { // this Read has no context
				t.Error(err)
			}
		}))
		for range 3 {
			suspend.Yield()
			must(b.Write([]byte("x")))
		}
		must(0, suspend.Blocking(context.Background(), func() { <-read }))
	})
}

// A deadline that is moved forward ends a waiting Read, wherever its timer is among the others: first, in between or last.
func TestADeadlineThatIsMovedForward(t *testing.T) {
	l := open(t, eventloop.Options{})
	for moved := range 5 {
		done := make(chan error, 1)
		var reader *eventloop.Conn
		for i := range 5 {
			a, b := pair(t, l)
			defer a.Close()
			defer b.Close()
			must(0, a.SetReadDeadline(time.Now().Add(time.Duration(i+1)*time.Hour)))
			if i == moved {
				reader = a
				must(0, l.Go(func() { _, err := a.Read(make([]byte, 1)); done <- err }))
			}
		}
		suspended(t, l, 1)
		must(0, reader.SetReadDeadline(time.Now().Add(time.Millisecond)))
		within(t, func() {
			if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	l := open(t, eventloop.Options{})
	big := make([]byte, 64<<20)
	for _, dir := range []struct {
		name string
		set  func(*eventloop.Conn, time.Time) error
		do   func(*eventloop.Conn) error
	}{
		{"read", (*eventloop.Conn).SetReadDeadline, func(c *eventloop.Conn) error { _, err := c.Read(make([]byte, 1)); return err }},
		{"write", (*eventloop.Conn).SetWriteDeadline, func(c *eventloop.Conn) error { _, err := c.Write(big); return err }},
		{"both", (*eventloop.Conn).SetDeadline, func(c *eventloop.Conn) error { _, err := c.Read(make([]byte, 1)); return err }},
	} {
		expired := func(t *testing.T, err error) {
			t.Helper()
			var ne net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
				t.Errorf("got %v", err)
			}
		}
		t.Run(dir.name, func(t *testing.T) {
			a, b := pair(t, l)
			defer b.Close()
			defer a.Close()
			t.Run("past", func(t *testing.T) {
				task(t, l, func() {
					must(0, dir.set(a, time.Now().Add(-time.Second)))
					expired(t, dir.do(a))
				})
			})
			t.Run("to come", func(t *testing.T) {
				task(t, l, func() {
					start := time.Now()
					must(0, dir.set(a, start.Add(20*time.Millisecond)))
					expired(t, dir.do(a))
					if d := time.Since(start); d < 20*time.Millisecond {
						t.Errorf("after %v", d)
					}
				})
			})
			t.Run("set while pending", func(t *testing.T) {
				must(0, dir.set(a, time.Time{}))
				done := make(chan error, 1)
				must(0, l.Go(func() { done <- dir.do(a) }))
				suspended(t, l, 1)
				must(0, dir.set(a, time.Unix(1, 0)))
				within(t, func() { expired(t, <-done) })
			})
			t.Run("extended while pending", func(t *testing.T) {
				for early := 30 * time.Millisecond; ; early *= 2 {
					start := time.Now()
					must(0, dir.set(a, start.Add(early)))
					done := make(chan error, 1)
					must(0, l.Go(func() { done <- dir.do(a) }))
					schedtest.Eventually(t, "it waits, or has ended", func() bool {
						s := l.Stats()
						return s.Suspended > 0 && s.Running == 0 || len(done) > 0
					})
					late := start.Add(early + 50*time.Millisecond)
					must(0, dir.set(a, late))
					within(t, func() { expired(t, <-done) })
					if !time.Now().Before(late) {
						break
					}
					if early > 5*time.Second { // or this machine was too slow
						t.Fatalf("%v early", time.Until(late))
					}
				}
			})
			t.Run("cleared while pending", func(t *testing.T) {
				must(0, dir.set(a, time.Now().Add(20*time.Millisecond)))
				done := make(chan error, 1)
				go func() { done <- dir.do(a) }()
				must(0, dir.set(a, time.Time{}))
				task(t, l, func() { must(0, suspend.Sleep(context.Background(), 40*time.Millisecond)) })
				select {
				case err := <-done:
					if err == nil || dir.name == "write" { // the timer was faster than this test
						t.Log("ended early:", err)
					}
				default:
				}
				a.Close()
				within(t, func() {
					select {
					case <-done:
					default:
						if err := <-done; !errors.Is(err, net.ErrClosed) {
							t.Error(err)
						}
					}
				})
			})
		})
	}
}

func TestCloseWakes(t *testing.T) {
	for _, where := range []string{"task", "goroutine"} {
		t.Run(where, func(t *testing.T) {
			l := open(t, eventloop.Options{})
			a, b := pair(t, l)
			defer b.Close()
			ln := must(l.Listen("tcp", "127.0.0.1:0"))
			done := make(chan error, 10)
			ops := []func() error{
				func() error { _, err := a.Read(make([]byte, 1)); return err },
				func() error { _, err := a.Read(make([]byte, 1)); return err }, // waits behind another Read
				func() error { _, err := a.Write(make([]byte, 64<<20)); return err },
				func() error { _, err := ln.Accept(); return err },
			}
			for _, op := range ops {
				if where == "task" {
					must(0, l.Go(func() { done <- op() }))
				} else {
					go func() { done <- op() }()
				}
			}
			if where == "task" {
				suspended(t, l, int64(len(ops)))
			}
			must(0, a.Close())
			must(0, ln.Close())
			within(t, func() {
				for range ops {
					if err := <-done; !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
				}
			})
			for _, op := range ops {
				if err := op(); !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
			for _, err := range []error{a.Close(), ln.Close(), a.SetDeadline(time.Now()), a.CloseWrite()} {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
}

// The messages of each writer stay whole and in order. Every byte is read once.
func TestConcurrentReadsAndWrites(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	a, b := pair(t, l)
	const writers, readers, messages, size = 4, 4, 50, 10000
	var wrote, read sync.WaitGroup
	for w := range writers {
		wrote.Add(1)
		f := func() {
			defer wrote.Done()
			for m := range messages {
				msg := bytes.Repeat([]byte{byte('a' + w)}, size)
				msg[0] = byte(m)
				must(a.Write(msg))
			}
		}
		if w%2 == 0 {
			must(0, l.Go(f))
		} else {
			go f()
		}
	}
	go func() { wrote.Wait(); must(0, a.CloseWrite()) }()
	var mu sync.Mutex
	counts := map[byte]int{}
	for range readers {
		read.Add(1)
		must(0, l.Go(func() {
			defer read.Done()
			buf := make([]byte, 5000)
			for {
				n, err := b.Read(buf)
				mu.Lock()
				for _, c := range buf[:n] {
					counts[c]++
				}
				mu.Unlock()
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					return
				}
			}
		}))
	}
	within(t, read.Wait)
	for w := range writers {
		if c := byte('a' + w); counts[c] < messages*(size-1) || counts[c] > messages*size {
			t.Errorf("%c: %d bytes", c, counts[c])
		}
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total != writers*messages*size {
		t.Errorf("%d bytes", total)
	}
}

func TestWritesAreWhole(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	const writers, size = 3, 16 << 20
	var wrote sync.WaitGroup
	for w := range writers {
		wrote.Add(1)
		must(0, l.Go(func() {
			defer wrote.Done()
			if n, err := a.Write(bytes.Repeat([]byte{byte(w)}, size)); n != size || err != nil {
				t.Error(n, err)
			}
		}))
	}
	within(t, func() { // a slow reader: it begins when all writers are under way
		suspended(t, l, writers)
		for range writers {
			got := make([]byte, size)
			must(io.ReadFull(b, got))
			if bytes.Count(got, got[:1]) != size {
				t.Error("torn")
			}
		}
		wrote.Wait()
	})
}

func TestHalfClose(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	task(t, l, func() {
		must(a.Write([]byte("question")))
		must(0, a.CloseWrite())
		if q := must(io.ReadAll(b)); string(q) != "question" {
			t.Errorf("%q", q)
		}
		must(b.Write([]byte("answer")))
		must(0, b.Close())
		if r := must(io.ReadAll(a)); string(r) != "answer" {
			t.Errorf("%q", r)
		}
		if n, err := a.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Error(n, err)
		}
	})
}

// A Read gets all data in the buffer even if the data and the end came as one event.
func TestDataAndEndAtOnce(t *testing.T) {
	l := open(t, eventloop.Options{})
	for range 50 {
		a, b := pair(t, l)
		task(t, l, func() {
			must(a.Write([]byte("abc")))
			must(0, a.Close())
			suspend.Yield()
			buf := make([]byte, 100)
			if n, err := b.Read(buf); n != 3 || err != nil {
				t.Error(n, err)
			}
			if n, err := b.Read(buf); n != 0 || err != io.EOF {
				t.Error(n, err)
			}
			b.Close()
		})
	}
}

func TestFromElsewhere(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	use := func(c *eventloop.Conn) {
		for i := range 100 {
			must(c.Write([]byte{byte(i)}))
			buf := make([]byte, 1)
			must(io.ReadFull(c, buf))
			if buf[0] != byte(i) {
				t.Error(buf[0])
			}
		}
	}
	within(t, func() {
		done := make(chan struct{})
		go func() { defer close(done); use(a) }()
		err := fifo.Run(context.Background(), func(context.Context) error { use(b); return nil })
		if err != nil {
			t.Error(err)
		}
		<-done
	})
	c, d := pair(t, l)
	within(t, func() { // the Read suspends only its own task of fifo, so that the other task can write
		_ = fifo.Run(context.Background(), func(context.Context) error {
			_ = suspend.Here().Go(func() { must(d.Write([]byte("x"))) })
			must(c.Read(make([]byte, 1)))
			return nil
		})
	})
}

func TestWithContext(t *testing.T) {
	l := open(t, eventloop.Options{})
	cause := errors.New("enough")
	cancelled := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	kinds := map[string]func(t *testing.T) net.Conn{
		"own":     func(t *testing.T) net.Conn { a, _ := pair(t, l); return a },
		"foreign": func(t *testing.T) net.Conn { a, _ := net.Pipe(); return a },
	}
	for name, conn := range kinds {
		for _, layer := range []string{"only", "outer", "inner"} {
			t.Run(name+"/"+layer, func(t *testing.T) {
				raw := conn(t)
				defer raw.Close()
				ctx, cancel := context.WithCancelCause(context.Background())
				other, stop := context.WithCancel(context.Background())
				defer stop()
				c := eventloop.WithContext(ctx, raw)
				switch layer {
				case "outer":
					c = eventloop.WithContext(ctx, eventloop.WithContext(other, raw))
				case "inner":
					c = eventloop.WithContext(other, c)
				}
				done := make(chan error, 3)
				read := func() { _, err := c.Read(make([]byte, 1)); done <- err }
				go func() { _, err := c.Write(make([]byte, 64<<20)); done <- err }()
				if name == "own" {
					must(0, l.Go(read))
					must(0, l.Go(read)) // waits behind another Read
					suspended(t, l, 2)
				} else {
					go read()
					go read()
				}
				cancel(cause)
				within(t, func() {
					for range 3 {
						cancelled(t, <-done)
					}
				})
				_, err := c.Read(make([]byte, 1))
				cancelled(t, err)
				_, err = c.Write(make([]byte, 1))
				cancelled(t, err)
			})
		}
	}
	t.Run("leaves the conn alone", func(t *testing.T) {
		a, b := pair(t, l)
		ctx, cancel := context.WithCancel(context.Background())
		c := eventloop.WithContext(ctx, a)
		cancel()
		if _, err := c.Read(nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		must(b.Write([]byte("x")))
		must(a.Read(make([]byte, 1)))
	})
}

// Many goroutines open and close connections, so that descriptor numbers are reused all the time. No goroutine reads bytes of
// another connection, or gets its error.
func TestDescriptorReuse(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- ln.Serve(ctx, echoMessages)
	}()
	const workers, each = 8, 150
	done := make(chan error, workers)
	for w := range workers {
		f := func() {
			done <- func() error {
				for i := range each {
					c, err := l.Dial(ctx, "tcp", ln.Addr().String())
					if err != nil {
						return err
					}
					msg := fmt.Appendf(nil, "%d/%d", w, i)
					if _, err := c.Write(msg); err != nil {
						return err
					}
					if i%3 == 0 { // another goroutine closes the connection during a Read
						go c.Close()
					}
					got := make([]byte, len(msg))
					if _, err := io.ReadFull(c, got); err == nil && !bytes.Equal(got, msg) {
						return fmt.Errorf("%q instead of %q", got, msg)
					} else if err != nil && (i%3 != 0 || !errors.Is(err, net.ErrClosed)) {
						return err
					}
					c.Close()
				}
				return nil
			}()
		}
		if w%2 == 0 {
			must(0, l.Go(f))
		} else {
			go f()
		}
	}
	within(t, func() {
		for range workers {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestDialFails(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	addr := ln.Addr().String()
	ln.Close()
	task(t, l, func() {
		var op *net.OpError
		if _, err := l.Dial(context.Background(), "tcp", addr); !errors.As(err, &op) {
			t.Error(err)
		}
		if _, err := l.Dial(context.Background(), "ip", addr); !errors.As(err, &op) {
			t.Error(err)
		}
		if _, err := l.Listen("ip", addr); !errors.As(err, &op) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := l.Dial(ctx, "tcp", addr); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestUnixSocket(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	path := t.TempDir() + "/s"
	ln := must(l.Listen("unix", path))
	go ln.Serve(context.Background(), echo)
	task(t, l, func() {
		if err := roundTripUnix(l, path); err != nil {
			t.Error(err)
		}
	})
	must(0, ln.Close())
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func roundTripUnix(l *eventloop.Loop, path string) error {
	c, err := l.Dial(context.Background(), "unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 5))
	return err
}

func TestPipe(t *testing.T) {
	l := open(t, eventloop.Options{})
	r, w, err := l.Pipe()
	must(0, err)
	sent := bytes.Repeat([]byte("0123456789"), 100000)
	task(t, l, func() {
		must(0, suspend.Here().Go(func() {
			must(w.Write(sent))
			must(0, w.Close())
		}))
		if got := must(io.ReadAll(r)); !bytes.Equal(got, sent) {
			t.Errorf("%d bytes", len(got))
		}
	})
}
