package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

func TestPages(t *testing.T) {
	files := fstest.MapFS{"a.txt": {Data: []byte("hello")}}
	s := newServer(nil, func(_ context.Context, name string) ([]byte, error) { return fs.ReadFile(files, name) })
	for i := range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/a.txt", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		s.ServeHTTP(w, r)
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err, w.Code)
		}
		if b, _ := io.ReadAll(z); string(b) != "hello" {
			t.Error(i, string(b))
		}
	}
	if n := s.disk.Stats().Completed; n != 1 {
		t.Errorf("the disk was read %d times", n)
	}
	for url, want := range map[string]int{"/none": 404, "/../main.go": 404, "/": 404} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://h"+url, nil))
		if w.Code != want {
			t.Errorf("%s: %d", url, w.Code)
		}
	}
	if err := s.close(context.Background()); err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/a.txt", nil))
	if w.Code != http.StatusInternalServerError {
		t.Error(w.Code)
	}
}

// A page is compressed for the clients that say so, and caches are told.
func TestCompression(t *testing.T) {
	s := newServer(nil, func(context.Context, string) ([]byte, error) { return []byte("hello"), nil })
	for _, c := range []struct {
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
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/a.txt", nil)
		for _, a := range c.accept {
			r.Header.Add("Accept-Encoding", a)
		}
		s.ServeHTTP(w, r)
		body := io.Reader(w.Body)
		if gzipped := w.Header().Get("Content-Encoding") == "gzip"; gzipped != c.gzip {
			t.Errorf("%q: gzip %v", c.accept, gzipped)
			continue
		}
		if c.gzip {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(c.accept, err)
			}
			body = z
		}
		if b, err := io.ReadAll(body); string(b) != "hello" || err != nil {
			t.Errorf("%q: %q, %v", c.accept, b, err)
		}
		if w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: no Vary", c.accept)
		}
	}
	if err := s.close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Pages over the event loop: the stages of the loop run on the tasks of its connections, and the disk on goroutines.
func TestOverTheLoop(t *testing.T) {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	files := fstest.MapFS{"a.txt": {Data: []byte("hello")}}
	var onLoop atomic.Bool
	s := newServer(loop, func(_ context.Context, name string) ([]byte, error) {
		if suspend.Within(loop) {
			onLoop.Store(true)
		}
		return fs.ReadFile(files, name)
	})
	ctx, stop := context.WithCancel(context.Background())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- s.run(ctx, loop, "127.0.0.1:0", func(a net.Addr) { at <- a.String() }) }()
	client := &http.Client{Timeout: 20 * time.Second}
	url := "http://" + <-at
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				for page, want := range map[string]string{"/a.txt": "200 hello", "/none": "404 404 page not found\n"} {
					res, err := client.Get(url + page)
					if err != nil {
						t.Error(err)
						return
					}
					b, err := io.ReadAll(res.Body)
					res.Body.Close()
					if got := fmt.Sprint(res.StatusCode, " ", string(b)); got != want || err != nil {
						t.Error(got, err)
					}
				}
			}
		})
	}
	all.Wait()
	client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := s.send.Stats().Completed; n != 100 || onLoop.Load() {
		t.Errorf("%d pages were sent; the disk on the loop: %v", n, onLoop.Load())
	}
}

// The disk gets five times its capacity. It goes on at its capacity, and cached pages are as fast as ever.
func TestASaturatedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heads := semaphore.New(40) // of the disk
		s := newServer(nil, func(ctx context.Context, _ string) ([]byte, error) {
			if err := heads.Acquire(ctx, 1); err != nil {
				return nil, err
			}
			defer heads.Release(1)
			time.Sleep(10 * time.Millisecond)
			return []byte("page"), nil
		})
		ctx := context.Background()
		if _, err := s.page(ctx, "fast", true); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var fast []time.Duration
		refused := 0
		var all sync.WaitGroup
		for i := range 10_000 {
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
				case name == "fast" && err != nil:
					t.Error(err)
				case name == "fast":
					fast = append(fast, time.Since(start))
				case errors.Is(err, stage.ErrOverload):
					refused++
				case err != nil:
					t.Error(err)
				}
			})
			time.Sleep(50 * time.Microsecond)
		}
		all.Wait()
		slices.Sort(fast)
		done := s.disk.Stats().Completed
		if p99 := fast[len(fast)*99/100]; p99 > time.Millisecond {
			t.Errorf("fast pages take %v", p99)
		}
		if done < 1800 || refused < 5000 { // 4000 a second, for half a second
			t.Errorf("%d read, %d refused", done, refused)
		}
		if err := s.close(ctx); err != nil {
			t.Error(err)
		}
	})
}
