package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// served is a server under test, on one of the two TCPs.
type served struct {
	*front
	*site
	dial func(t *testing.T) *client
	stop func() error // waits for running requests; a second call does nothing
}

// tcps opens a listener of each TCP, and returns a function that dials it.
var tcps = map[string]func(t *testing.T, loop *eventloop.Loop) (listener, func() (net.Conn, error)){
	"the kernel's TCP": func(t *testing.T, loop *eventloop.Loop) (listener, func() (net.Conn, error)) {
		ln, err := loop.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return ln, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }
	},
	"its own TCP, 1 % lost": func(t *testing.T, loop *eventloop.Loop) (listener, func() (net.Conn, error)) {
		a, b := netstack.Pair(netstack.WireOptions{Loss: .01, Seed: 1})
		stack := func(link netstack.Options, address string) *netstack.Stack {
			link.Addresses = []netip.Prefix{netip.MustParsePrefix(address)}
			s, err := netstack.New(link)
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		server, clients := stack(netstack.Options{Link: a, On: loop}, "10.0.0.1/24"), stack(netstack.Options{Link: b}, "10.0.0.2/24")
		ln, err := server.Listen("tcp", "10.0.0.1:80")
		require.NoError(t, err)
		return ln, func() (net.Conn, error) { return clients.Dial(context.Background(), "tcp", "10.0.0.1:80") }
	},
}

// overEach serves files over each TCP, and runs test for each server.
func overEach(t *testing.T, files map[string]string, test func(t *testing.T, s *served), set ...func(*front)) {
	dir := t.TempDir()
	for name, data := range files {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(data), 0o644))
	}
	for name, tcp := range tcps {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			test(t, start(t, tcp, dir, false, set...))
		})
	}
}

func start(t *testing.T, tcp func(*testing.T, *eventloop.Loop) (listener, func() (net.Conn, error)), dir string, direct bool, set ...func(*front)) *served {
	loop, err := eventloop.New(eventloop.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loop.Close()) })
	s := newSite(loop, 2, 10<<20, onDisk(loop, dir, direct))
	f := newFront(s)
	for _, set := range set {
		set(f)
	}
	ln, dial := tcp(t, loop)
	ended := make(chan error, 1)
	go func() { ended <- ln.Serve(f.ctx, f.serve) }()
	stop := sync.OnceValue(func() error {
		err := ln.Close()
		f.drain()
		<-ended
		f.cancel(nil)
		return errors.Join(err, s.close())
	})
	t.Cleanup(func() {
		time.AfterFunc(time.Second, func() { f.cancel(nil) })
		require.NoError(t, stop())
		require.Zero(t, f.connections(), "connections are left")
	})
	return &served{f, s, func(t *testing.T) *client {
		c, err := dial()
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return &client{t, c, bufio.NewReader(c)}
	}, stop}
}

func (f *front) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

// A client is one connection.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (c *client) send(s string) {
	_, err := io.WriteString(c, s)
	require.NoError(c.t, err)
}

// get returns a request for a file, with further header lines.
func get(path string, header ...string) string {
	return "GET " + path + " HTTP/1.1\r\n" + strings.Join(append([]string{"Host: x"}, header...), "\r\n") + "\r\n\r\n"
}

// answer returns the next response, to a request with the given method.
func (c *client) answer(method string) (*http.Response, string) {
	r, err := http.ReadResponse(c.in, &http.Request{Method: method})
	require.NoError(c.t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	return r, string(body)
}

func (c *client) expect(status int, body string) *http.Response {
	r, got := c.answer("GET")
	require.Equal(c.t, status, r.StatusCode)
	require.True(c.t, got == body, "%d bytes in place of %d", len(got), len(body))
	return r
}

func (c *client) expectEnd() {
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, io.EOF)
}

// bytesOf returns n bytes without repetitions.
func bytesOf(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}

func TestFiles(t *testing.T) {
	big := bytesOf(3 << 20)
	files := map[string]string{
		"a.txt": "hello", "empty": "", "sub/index.html": "<p>sub", "index.html": "<p>top", "page.bin": bytesOf(16 << 10), "big.bin": big,
		"a b.txt": "space", "a?b/c": "odd", "full.bin": bytesOf(largest),
	}
	overEach(t, files, func(t *testing.T, s *served) {
		c := s.dial(t)
		for range 2 { // first from the disk, then from the cache
			for name, data := range files {
				c.send(get("/" + strings.NewReplacer(" ", "%20", "?", "%3F").Replace(name)))
				r := c.expect(200, data)
				require.Equal(t, int64(len(data)), r.ContentLength)
				require.NotEmpty(t, r.Header.Get("Last-Modified"))
			}
		}
		require.Equal(t, uint64(len(files)+1), s.disk.Stats().Completed, "the large one is read each time, and the others once")
		for path, want := range map[string]string{"/": "<p>top", "/sub/": "<p>sub", "//a.txt": "hello", "/sub/../a.txt?x=y": "hello", "/./a.txt": "hello"} {
			c.send(get(path))
			c.expect(200, want)
		}
		for _, path := range []string{"/none", "/a.txt/", "/../main.go", "/..%2f..%2fetc/passwd", "/%00", "/a.txt%00", "/sub/none", "/" + strings.Repeat("x", 300)} {
			c.send(get(path))
			c.expect(404, "not found\n")
		}
		c.send(get("/sub"))
		r, _ := c.answer("GET")
		require.Equal(t, 301, r.StatusCode)
		require.Equal(t, "/sub/", r.Header.Get("Location"))
		c.send(get("/a%3Fb?c=d"))
		r, _ = c.answer("GET")
		require.Equal(t, "/a%3Fb/?c=d", r.Header.Get("Location"))
		for _, name := range []string{"a.txt", "big.bin"} {
			c.send("HEAD /" + name + " HTTP/1.1\r\nHost: x\r\n\r\n")
			r, body := c.answer("HEAD")
			require.Equal(t, int64(len(files[name])), r.ContentLength)
			require.Empty(t, body)
		}
		c.send("POST /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
		require.Equal(t, "GET, HEAD", c.expect(405, "method not allowed\n").Header.Get("Allow"))
		c.send(get("/-/stages"))
		_, body := c.answer("GET")
		require.Contains(t, body, "compress")
	})
}

// Direct reads need buffers of whole blocks. The client gets the file as usual.
func TestDirect(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	dir := t.TempDir()
	s := start(t, tcps["the kernel's TCP"], dir, true)
	c := s.dial(t)
	for _, n := range []int{0, 1, block - 1, block, block + 1, 5000, 4*block - 1, 4 * block, 20_000, 32 << 10, 40_000, 49_153, 777_777, largest, largest + 1} {
		name, data := fmt.Sprint(n), bytesOf(n)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
		c.send(get("/" + name))
		c.expect(200, data)
	}
}

func TestConditions(t *testing.T) {
	data, big := bytesOf(1000), bytesOf(3<<20)
	overEach(t, map[string]string{"a.bin": data, "big.bin": big, "a.txt": "hello"}, func(t *testing.T, s *served) {
		c := s.dial(t)
		c.send(get("/a.txt"))
		modified := c.expect(200, "hello").Header.Get("Last-Modified")
		c.send(get("/a.txt", "If-Modified-Since: "+modified))
		require.Equal(t, modified, c.expect(304, "").Header.Get("Last-Modified"))
		c.send(get("/a.txt", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"))
		c.expect(200, "hello")
		c.send(get("/a.txt", "If-Modified-Since: soon"))
		c.expect(200, "hello")
		c.send(get("/a.txt", "If-Modified-Since: "+modified, `If-None-Match: "x"`))
		c.expect(200, "hello")
		for header, status := range map[string]int{
			"If-Unmodified-Since: " + modified:                   200,
			"If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT": 412,
			"If-Unmodified-Since: soon":                          200,
			"If-Match: *":                                        200,
			`If-Match: "x"`:                                      412,
			"If-Match: *\r\nIf-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT": 200, // If-Match has precedence
		} {
			c.send(get("/a.txt", header))
			c.expect(status, map[int]string{200: "hello", 412: "changed\n"}[status])
		}
		c.send("HEAD /a.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n")
		r, _ := c.answer("HEAD")
		require.Equal(t, 200, r.StatusCode)
		for _, a := range []struct {
			file, ask string
			status    int
			body, of  string
		}{
			{"a.bin", "bytes=0-0", 206, data[:1], "bytes 0-0/1000"},
			{"a.bin", "bytes=10-19", 206, data[10:20], "bytes 10-19/1000"},
			{"a.bin", "bytes=990-", 206, data[990:], "bytes 990-999/1000"},
			{"a.bin", "bytes=-10", 206, data[990:], "bytes 990-999/1000"},
			{"a.bin", "bytes=-5000", 206, data, "bytes 0-999/1000"},
			{"a.bin", "bytes=500-5000", 206, data[500:], "bytes 500-999/1000"},
			{"a.bin", "bytes=1000-", 416, "", "bytes */1000"},
			{"a.bin", "bytes=20-10", 416, "", "bytes */1000"},
			{"a.bin", "bytes=0-1,5-6", 200, data, ""},
			{"a.bin", "items=0-1", 200, data, ""},
			{"a.bin", "Bytes=0-0", 206, data[:1], "bytes 0-0/1000"},
			{"big.bin", "bytes=1000000-2999999", 206, big[1000000:3000000], "bytes 1000000-2999999/3145728"},
			{"big.bin", "bytes=3145727-", 206, big[3145727:], "bytes 3145727-3145727/3145728"},
			{"big.bin", "bytes=4000000-", 416, "", "bytes */3145728"},
		} {
			c.send(get("/"+a.file, "Range: "+a.ask))
			require.Equal(t, a.of, c.expect(a.status, a.body).Header.Get("Content-Range"), a.ask)
		}
	})
}

// A text is compressed for clients that accept this, and the response says so to caches.
func TestCompression(t *testing.T) {
	text := strings.Repeat("hello ", 1000)
	overEach(t, map[string]string{"a.txt": text, "a.png": "png"}, func(t *testing.T, s *served) {
		c := s.dial(t)
		for _, a := range []struct {
			accept []string
			gzip   bool
		}{
			{nil, false},
			{[]string{""}, false},
			{[]string{"identity"}, false},
			{[]string{"deflate, br"}, false},
			{[]string{"gzip"}, true},
			{[]string{"GZip;q=0.001"}, true},
			{[]string{"x-gzip"}, true},
			{[]string{"br , gzip ; q=0.5"}, true},
			{[]string{"br", "gzip"}, true},
			{[]string{"*"}, true},
			{[]string{"gzip;q=0"}, false},
			{[]string{"gzip; Q=0.000, *"}, false},
			{[]string{"*, gzip;q=0"}, false},
			{[]string{"*;q=0"}, false},
			{[]string{"*;q=0, gzip"}, true},
			{[]string{"gzip, *;q=0"}, true},
			{[]string{"gzip;q=much"}, false},
			{[]string{"gzip;level=9"}, false},
			{[]string{"gzipped, notgzip"}, false},
		} {
			var header []string
			for _, v := range a.accept {
				header = append(header, "Accept-Encoding: "+v)
			}
			c.send(get("/a.txt", header...))
			r, body := c.answer("GET")
			require.Equal(t, "Accept-Encoding", r.Header.Get("Vary"))
			require.Equal(t, a.gzip, r.Header.Get("Content-Encoding") == "gzip", "%q", a.accept)
			if a.gzip {
				z, err := gzip.NewReader(strings.NewReader(body))
				require.NoError(t, err)
				plain, err := io.ReadAll(z)
				require.NoError(t, err)
				body = string(plain)
			}
			require.Equal(t, text, body)
		}
		require.Equal(t, uint64(1), s.compress.Stats().Completed, "it is cached compressed")
		c.send(get("/a.png", "Accept-Encoding: gzip"))
		require.Empty(t, c.expect(200, "png").Header.Get("Vary"))
	})
}

func TestPipelining(t *testing.T) {
	overEach(t, map[string]string{"1": "one", "2": "two"}, func(t *testing.T, s *served) {
		c := s.dial(t)
		c.send(get("/1") + get("/2") + get("/3") + get("/1"))
		c.expect(200, "one")
		c.expect(200, "two")
		c.expect(404, "not found\n")
		c.expect(200, "one")
		c.send(get("/1") + get("/2"))
		half, ok := c.Conn.(interface{ CloseWrite() error })
		require.True(t, ok)
		require.NoError(t, half.CloseWrite())
		c.expect(200, "one")
		c.expect(200, "two")
		c.expectEnd()
	})
}

func TestRequestsThatEndTheConnection(t *testing.T) {
	overEach(t, map[string]string{"a": "hello"}, func(t *testing.T, s *served) {
		for name, a := range map[string]struct {
			request string
			status  int
		}{
			"garbage":           {"\x16\x03\x01 hello\r\n\r\n", 400},
			"bad header":        {"GET /a HTTP/1.1\r\nHost x\r\n\r\n", 400},
			"two lengths":       {"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
			"long header":       {"GET /a HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", 431},
			"long request line": {"GET /" + strings.Repeat("x", 2*maxHeader) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
			"long body":         {"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), 400},
			"close":             {"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200},
			"HTTP/1.0":          {"GET /a HTTP/1.0\r\n\r\n", 200},
		} {
			t.Run(name, func(t *testing.T) {
				c := s.dial(t)
				c.send(a.request)
				r, _ := c.answer("GET")
				require.Equal(t, a.status, r.StatusCode)
				require.True(t, r.Close)
				c.expectEnd()
			})
		}
	})
}

// Clients that send slowly, read nothing, or leave lose only their own connection. They leave no goroutine behind, as start
// checks.
func TestRudeClients(t *testing.T) {
	overEach(t, map[string]string{"a.txt": "hello", "big.bin": bytesOf(20 << 20)}, func(t *testing.T, s *served) {
		var all sync.WaitGroup
		for range 5 {
			slow, silent, deaf, half, gone := s.dial(t), s.dial(t), s.dial(t), s.dial(t), s.dial(t)
			all.Go(func() {
				for _, b := range []byte(get("/a.txt", "X: "+strings.Repeat("x", 5000))) {
					if _, err := slow.Write([]byte{b}); err != nil {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
			all.Go(func() { _, _ = io.Copy(io.Discard, silent) })
			deaf.send(get("/big.bin"))
			half.send("GET /big.bin HTTP/1.1\r\nHo")
			gone.send(get("/big.bin") + get("/big.bin") + get("/a.txt"))
			_, err := gone.in.Peek(1)
			require.NoError(t, err)
			if c, ok := gone.Conn.(interface{ SetLinger(int) error }); ok {
				_ = c.SetLinger(0)
			}
			gone.Close()
		}
		c := s.dial(t)
		for range 20 {
			c.send(get("/a.txt"))
			c.expect(200, "hello")
			time.Sleep(5 * time.Millisecond)
		}
		all.Wait()
		c.Close()
		schedtest.Eventually(t, "all have been given up", func() bool { return s.connections() == 0 })
	}, func(f *front) {
		f.http.ReadTimeout, f.http.IdleTimeout, f.write = time.Second, time.Second, time.Second // a lost packet is sent again after 200 ms
	})
}

// Shutdown lets running requests finish, and closes idle connections.
func TestEnd(t *testing.T) {
	overEach(t, map[string]string{"a.txt": "hello", "big.bin": bytesOf(3 << 20)}, func(t *testing.T, s *served) {
		fresh, idle, busy := s.dial(t), s.dial(t), s.dial(t)
		idle.send(get("/a.txt"))
		idle.expect(200, "hello")
		busy.send(get("/big.bin"))
		_, err := busy.in.Peek(1)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- s.stop() }()
		idle.expectEnd()
		fresh.expectEnd()
		busy.expect(200, bytesOf(3<<20))
		busy.expectEnd()
		require.NoError(t, <-ended)
	})
}

// The command serves until it is interrupted.
func TestServe(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o644))
	ctx, stop := context.WithCancel(context.Background())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- options{addr: "127.0.0.1:0", dir: dir, cache: 1, grace: time.Second, ready: func(a net.Addr) { at <- a.String() }}.serve(ctx)
	}()
	r, err := http.Get("http://" + <-at + "/a.txt")
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	require.NoError(t, err)
	require.Equal(t, "hello", string(body))
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
	require.Error(t, options{addr: "nowhere:0", ready: func(net.Addr) {}}.serve(context.Background()))
	require.Error(t, options{stack: "tun0", ready: func(net.Addr) {}}.serve(context.Background()))
}

// The cache never exceeds its size, and returns the page of the requested name.
func TestCache(t *testing.T) {
	ctx, cache, size, hits := context.Background(), newCache(1000), 1000, 0
	rng := rand.New(rand.NewPCG(1, 2))
	kept := func() (sum int) {
		for i := range 100 {
			if p, _ := cache(ctx, lookup{name: fmt.Sprint(i)}); p != nil {
				require.Equal(t, i, len(p.data))
				sum += i
			}
		}
		return sum
	}
	for range 10_000 {
		i := rng.IntN(100)
		l := lookup{name: fmt.Sprint(i)}
		if p, _ := cache(ctx, l); p != nil {
			hits++
			continue
		}
		l.page = &page{data: make([]byte, i)}
		p, err := cache(ctx, l)
		require.NoError(t, err)
		require.Same(t, l.page, p)
	}
	require.Greater(t, hits, 500)
	require.LessOrEqual(t, kept(), size)
	require.Greater(t, kept(), size/2)
	_, err := cache(ctx, lookup{name: "huge", page: &page{data: make([]byte, size+1)}})
	require.NoError(t, err)
	p, _ := cache(ctx, lookup{name: "huge"})
	require.Nil(t, p)
	_, _ = cache(ctx, lookup{name: "roomy", page: &page{data: make([]byte, 1, size+1)}})
	p, _ = cache(ctx, lookup{name: "roomy"})
	require.Nil(t, p)
	// A page that is requested again and again stays, however many other pages are requested once.
	_, _ = cache(ctx, lookup{name: "hot", page: &page{data: make([]byte, 10)}})
	for i := range 1000 {
		p, _ := cache(ctx, lookup{name: "hot"})
		require.NotNil(t, p, i)
		_, _ = cache(ctx, lookup{name: fmt.Sprint("cold", i), page: &page{data: make([]byte, 100)}})
	}
}

// The disk gets five times as many requests as it can serve. It serves as many as it can, and cached files are served as fast as
// before.
func TestASaturatedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heads := semaphore.New(40) // the heads of the disk
		s := newSite(nil, 2, 1<<20, func(ctx context.Context, name string, _ bool) (file, error) { return &slowFile{ctx, heads, name}, nil })
		ctx := context.Background()
		_, err := s.page(ctx, "fast", true)
		require.NoError(t, err)
		var mu sync.Mutex
		var fast []time.Duration
		refused := 0
		var all sync.WaitGroup
		for i := range 20_000 {
			all.Go(func() {
				start := time.Now()
				name := fmt.Sprint("slow", i)
				if i%20 == 0 {
					name = "fast"
				}
				_, err := s.page(ctx, name, true)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case name == "fast":
					require.NoError(t, err)
					fast = append(fast, time.Since(start))
				case errors.Is(err, stage.ErrOverload):
					refused++
				default:
					require.NoError(t, err)
				}
			})
			time.Sleep(50 * time.Microsecond)
		}
		all.Wait()
		slices.Sort(fast)
		require.Less(t, fast[len(fast)*99/100], time.Millisecond)
		require.GreaterOrEqual(t, s.disk.Stats().Completed, uint64(4000)) // the disk can serve 4000 a second, and had more than a second
		require.GreaterOrEqual(t, refused, 8000)
		require.NoError(t, s.close())
	})
}

// A slowFile uses one of the heads for 10 ms.
type slowFile struct {
	ctx   context.Context
	heads *semaphore.Semaphore
	name  string
}

func (f *slowFile) ReadAt(p []byte, _ int64) (int, error) {
	if err := f.heads.Acquire(f.ctx, 1); err != nil {
		return 0, err
	}
	defer f.heads.Release(1)
	if err := suspend.Sleep(f.ctx, 10*time.Millisecond); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *slowFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *slowFile) Close() error               { return nil }
func (f *slowFile) Name() string               { return f.name }
func (f *slowFile) Size() int64                { return 10 }
func (f *slowFile) Mode() fs.FileMode          { return 0o644 }
func (f *slowFile) ModTime() time.Time         { return time.Now() }
func (f *slowFile) IsDir() bool                { return false }
func (f *slowFile) Sys() any                   { return nil }

// Each error of the disk leads to a status.
func TestErrors(t *testing.T) {
	for err, status := range map[error]int{fs.ErrPermission: 404, io.ErrUnexpectedEOF: 500, stage.ErrFull: 503, context.DeadlineExceeded: 504} {
		s := newSite(nil, 1, 1, func(context.Context, string, bool) (file, error) { return nil, err })
		var c fasthttp.RequestCtx
		c.Request.SetRequestURI("/a")
		s.answer(context.Background(), &c)
		require.Equal(t, status, c.Response.StatusCode())
		require.Equal(t, status == 503, bytes.Equal(c.Response.Header.Peek("Retry-After"), []byte("1")))
		require.NoError(t, s.close())
	}
}
