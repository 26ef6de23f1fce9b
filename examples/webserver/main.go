// Webserver is the web server of the paper, as far as stages go: cache, disk and send.
//
//	go run ./examples/webserver -dir . -addr 127.0.0.1:8080
//	curl -i 127.0.0.1:8080/go.mod        a page; with --compressed it is sent compressed
//	curl 127.0.0.1:8080/-/stages         the stages; a browser gets a page
//
// An event loop accepts and parses. A cached page takes one stage of width 1, whose state needs no lock, and the sender. Other
// pages take the disk in between, on goroutines, whose width is found by Climb. The two CPU stages share a pool on the loop.
// An idle stage of the loop so runs on the task of the connection. When the disk is full, its pages are 503 at once, and cached
// pages go on as before.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/view"
	"github.com/braidgo/braid/suspend"
)

// A lookup asks the cache for a page; one with data puts it there.
type lookup struct {
	name string
	data []byte
}

// A server has a stage for each of its resources.
type server struct {
	cpu   *stage.Pool
	cache *stage.Stage[lookup, []byte]
	disk  *stage.Stage[string, []byte]
	send  *stage.Stage[[]byte, []byte]
}

const (
	pages   = 1000    // in the cache
	largest = 1 << 20 // bytes of a page that is cached
)

// newServer returns a server whose CPU stages are on a scheduler; nil is goroutines.
func newServer(on suspend.Spawner, read func(ctx context.Context, name string) ([]byte, error)) *server {
	s := &server{cpu: stage.NewPool("cpu", runtime.GOMAXPROCS(0), on)}
	s.cache = stage.New("cache", newCache(), stage.Options{Pool: s.cpu, Width: 1, Queue: 1000, Full: stage.FullReject})
	s.disk = stage.New("disk", read, stage.Options{Width: 40, Queue: 160, Full: stage.FullReject, Delay: 20 * time.Millisecond,
		Limit: &stage.Climb{Min: 4, Max: 400}})
	writers := sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	s.send = stage.New("send", func(_ context.Context, data []byte) ([]byte, error) {
		var b bytes.Buffer
		z := writers.Get().(*gzip.Writer)
		z.Reset(&b)
		_, _ = z.Write(data)
		err := z.Close()
		writers.Put(z)
		return b.Bytes(), err
	}, stage.Options{Pool: s.cpu, Queue: 1000, Full: stage.FullReject})
	return s
}

// newCache returns the handler of the cache. Its stage has a width of 1, so its state needs no lock. A page that was read
// since it was last looked at for eviction has a second chance.
func newCache() func(context.Context, lookup) ([]byte, error) {
	type entry struct {
		data []byte
		used bool
	}
	kept, order := map[string]*entry{}, []string(nil)
	return func(_ context.Context, l lookup) ([]byte, error) {
		e := kept[l.name]
		switch {
		case e != nil:
			e.used = true
			return e.data, nil
		case l.data == nil || len(l.data) > largest:
			return nil, nil
		}
		kept[l.name] = &entry{data: l.data}
		for order = append(order, l.name); len(order) > pages; order = order[1:] {
			if first := kept[order[0]]; first.used {
				first.used = false
				order = append(order, order[0])
			} else {
				delete(kept, order[0])
			}
		}
		return l.data, nil
	}
}

// page returns a page, compressed if the client takes that.
func (s *server) page(ctx context.Context, name string, compressed bool) ([]byte, error) {
	data, err := s.cache.Do(ctx, lookup{name: name})
	if err == nil && data == nil {
		if data, err = s.disk.Do(ctx, name); err == nil {
			_ = s.cache.TrySubmit(ctx, lookup{name, data}) // if it has no time, the page is read again
		}
	}
	if err != nil || !compressed {
		return data, err
	}
	return s.send.Do(ctx, data)
}

// takesGzip reports whether the Accept-Encoding of a request allows gzip. A request without one may be of a client that does not
// decompress. The weight of gzip itself goes before the weight of "*", and a weight of 0 forbids it.
func takesGzip(h http.Header) bool {
	takes, named := false, false
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, parameters, weighted := strings.Cut(part, ";")
		weight := 1.0
		if weighted {
			name, value, _ := strings.Cut(strings.TrimSpace(parameters), "=")
			w, err := strconv.ParseFloat(value, 64)
			if !strings.EqualFold(name, "q") || err != nil {
				w = 0
			}
			weight = w
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			takes, named = weight > 0 || named && takes, true
		case "*":
			takes = takes || !named && weight > 0
		}
	}
	return takes
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	compressed := takesGzip(r.Header)
	data, err := s.page(ctx, path.Clean("/" + r.URL.Path)[1:], compressed)
	switch {
	case err == nil:
		w.Header().Set("Vary", "Accept-Encoding") // a cache must not give it to others
		if compressed {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(data)
	case errors.Is(err, stage.ErrOverload):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		http.NotFound(w, r)
	case ctx.Err() != nil:
		http.Error(w, "too slow", http.StatusGatewayTimeout)
	default:
		http.Error(w, "error", http.StatusInternalServerError)
	}
}

func (s *server) close(ctx context.Context) error {
	return stage.Close(ctx, s.cache, s.disk, s.send)
}

// run serves on addr until ctx is done. Then it closes the front, waits a while for the last answers, and closes the stages.
func (s *server) run(ctx context.Context, loop *eventloop.Loop, addr string, ready func(net.Addr)) error {
	mux := http.NewServeMux()
	mux.Handle("/-/stages", view.Handler(s.cache, s.disk, s.send))
	mux.Handle("/", s)
	ln, err := loop.Listen("tcp", addr)
	if err != nil {
		return err
	}
	ready(ln.Addr())
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- ln.Serve(serving, func(ctx context.Context, c net.Conn) { serveConn(ctx, c, mux) })
	}()
	select {
	case err := <-served: // it failed
		return err
	case <-ctx.Done():
	}
	gently, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = ln.Shutdown(gently)
	stop()
	<-served
	return s.close(context.Background())
}

const grace = 2 * time.Second

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address")
	dir := flag.String("dir", ".", "directory of the pages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		log.Fatal(err)
	}
	root := os.DirFS(*dir)
	s := newServer(loop, func(_ context.Context, name string) ([]byte, error) { return fs.ReadFile(root, name) })
	if err := s.run(ctx, loop, *addr, func(at net.Addr) { log.Printf("http://%s", at) }); err != nil {
		log.Fatal(err)
	}
	_ = loop.Close()
}
