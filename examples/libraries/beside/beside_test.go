package beside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panjf2000/ants/v2"
	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// TestLines counts the lines of code of each pair, without imports, comments and empty lines. docs/programs.md has the same figures.
func TestLines(t *testing.T) {
	page, err := os.ReadFile("../../../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("*_usual.go")
	if err != nil || len(names) != 21 {
		t.Fatal(names, err)
	}
	for _, usual := range names {
		ours := strings.Replace(usual, "_usual", "", 1)
		n, m := linesOf(t, ours), linesOf(t, usual)
		t.Logf("%-12s %3d lines, usually %3d", strings.TrimSuffix(ours, ".go"), n, m)
		if n > m && ours != "server.go" { // the usual server is shorter because it has two faults
			t.Errorf("%s has %d lines, and %s has %d", ours, n, usual, m)
		}
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\|.*\| %d \|.*\| %d \|$`, n, m)).Match(page) {
			t.Errorf("docs/programs.md has no row with %d and %d lines, those of %s", n, m, ours)
		}
	}
}

func linesOf(t *testing.T, name string) int {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(text), "\n)\n") // skips the imports
	if !ok {
		t.Fatal(name, " has no imports")
	}
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(code))
	var s scanner.Scanner
	s.Init(file, []byte(code), nil, 0)
	found := map[int]bool{}
	for {
		pos, tok, _ := s.Scan()
		if tok == token.EOF {
			return len(found)
		}
		found[file.Line(pos)] = true
	}
}

type pageCache interface {
	http.Handler
	get(ctx context.Context, path string) (string, error)
}

func TestCache(t *testing.T) {
	type loads = func(context.Context, string) (string, error)
	for name, open := range map[string]func(loads) pageCache{
		"braid": func(load loads) pageCache { return newCache(load, time.Hour) },
		"usual": func(load loads) pageCache { return newCacheUsual(load, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var loads atomic.Int64
				c := open(func(ctx context.Context, path string) (string, error) {
					n := loads.Add(1)
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
						return "", ctx.Err()
					}
					if path == "/broken" && n == 1 {
						return "", errors.New("broken")
					}
					return "page " + path, nil
				})
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						w := httptest.NewRecorder()
						c.ServeHTTP(w, httptest.NewRequest("GET", "/a", nil))
						if w.Body.String() != "page /a" {
							t.Error(w.Body)
						}
					})
				}
				wg.Wait()
				time.Sleep(59 * time.Minute)
				if _, err := c.get(t.Context(), "/a"); err != nil || loads.Load() != 1 {
					t.Error(loads.Load(), "loads", err)
				}
				time.Sleep(time.Minute)
				if _, err := c.get(t.Context(), "/a"); err != nil || loads.Load() != 2 {
					t.Error(loads.Load(), "loads after an hour", err)
				}
				loads.Store(0)
				if _, err := c.get(t.Context(), "/broken"); err == nil {
					t.Error("no error")
				}
				if text, err := c.get(t.Context(), "/broken"); err != nil || text != "page /broken" { // an error is not cached
					t.Error(text, err)
				}
				// The first client gives up, and the second gets the page.
				impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				wg.Go(func() {
					if _, err := c.get(impatient, "/b"); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
				synctest.Wait()
				if text, err := c.get(t.Context(), "/b"); err != nil || text != "page /b" {
					t.Error(text, err)
				}
				wg.Wait()
			})
		})
	}
}

func TestGroup(t *testing.T) {
	files := strings.Fields("a bb ccc dddd eeeee ffffff ggggggg")
	for name, f := range map[string]func(context.Context, []string, func(context.Context, string) (int, error)) ([]int, error){"braid": sizes, "usual": sizesUsual} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var most, running atomic.Int64
				all, err := f(t.Context(), files, func(_ context.Context, file string) (int, error) {
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(time.Second)
					running.Add(-1)
					return len(file), nil
				})
				if err != nil || !slices.Equal(all, []int{1, 2, 3, 4, 5, 6, 7}) || most.Load() > 4 {
					t.Error(all, err, most.Load())
				}
				oops := errors.New("oops")
				if _, err = f(t.Context(), files, func(ctx context.Context, file string) (int, error) {
					if len(file) == 3 {
						return 0, oops
					}
					<-ctx.Done()
					return 0, ctx.Err()
				}); !errors.Is(err, oops) {
					t.Error(err)
				}
			})
		})
	}
}

func TestStream(t *testing.T) {
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	pictures := func(n int) iter.Seq[string] {
		return func(yield func(string) bool) {
			for i := range n {
				if !yield(strconv.Itoa(i)) {
					return
				}
			}
		}
	}
	oops := errors.New("oops")
	shrink := func(_ context.Context, p string) (string, error) {
		if p == "70" {
			return "", oops
		}
		return "small " + p, nil
	}
	for name, f := range map[string]func(n int, show func(string)) error{
		"braid": func(n int, show func(string)) error {
			return thumbnails(t.Context(), pool, pictures(n), shrink, show)
		},
		"usual": func(n int, show func(string)) error {
			return thumbnailsUsual(t.Context(), pictures(n), shrink, show)
		},
	} {
		for n, want := range map[int]error{50: nil, 1000: oops} {
			shown := 0
			err := f(n, func(small string) {
				if small != fmt.Sprint("small ", shown) {
					t.Error(name, small, shown)
				}
				shown++
			})
			if err != want || shown != min(n, 70) {
				t.Error(name, n, shown, err)
			}
		}
	}
}

func TestQueue(t *testing.T) {
	type jobs interface {
		put(job int)
		take(ctx context.Context, fits func(job int) bool) (int, error)
	}
	for name, open := range map[string]func() jobs{"braid": func() jobs { return newQueue() }, "usual": func() jobs { return newQueueUsual() }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open()
				even := func(job int) bool { return job%2 == 0 }
				late, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				q.put(1)
				if _, err := q.take(late, even); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				got := make(chan int)
				for range 2 {
					go func() { job, _ := q.take(t.Context(), even); got <- job }()
				}
				synctest.Wait()
				q.put(4)
				q.put(6)
				if a, b := <-got, <-got; a+b != 10 {
					t.Error(a, b)
				}
				if job, err := q.take(t.Context(), func(int) bool { return true }); job != 1 || err != nil {
					t.Error(job, err)
				}
			})
		})
	}
}

func TestParallel(t *testing.T) {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	v := make([]int, 200_000)
	for i := range v {
		v[i] = rand.Int()
	}
	want := slices.Sorted(slices.Values(v))
	w := slices.Clone(v)
	if err := quicksort(t.Context(), pool, v); err != nil || !slices.Equal(v, want) {
		t.Error("not sorted", err)
	}
	if err := quicksortUsual(t.Context(), w); err != nil || !slices.Equal(w, want) {
		t.Error("not sorted", err)
	}
	picture := func() (rows [][]byte) {
		for range 60 {
			rows = append(rows, make([]byte, 80))
		}
		return rows
	}
	a, b := picture(), picture()
	if err := errors.Join(mandelbrot(t.Context(), pool, a), mandelbrotUsual(t.Context(), b)); err != nil {
		t.Error(err)
	}
	if !slices.EqualFunc(a, b, slices.Equal[[]byte]) || a[30][40] != 0 || a[0][0] == 0 {
		t.Error("not the Mandelbrot set")
	}
}

func TestEcho(t *testing.T) {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	ours, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	usual, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]struct {
		ln    net.Listener
		serve func(ctx context.Context) error
	}{
		"braid": {ours, func(ctx context.Context) error { return echo(ctx, ours) }},
		"usual": {usual, func(ctx context.Context) error { return echoUsual(ctx, usual) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- server.serve(ctx) }()
			c, err := net.Dial("tcp", server.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			say := func(line string) {
				t.Helper()
				b := make([]byte, len(line))
				_, err := c.Write([]byte(line))
				if n, err2 := c.Read(b); err != nil || err2 != nil || string(b[:n]) != line {
					t.Error(string(b[:n]), err, err2)
				}
			}
			say("hello\n")
			stop()
			start := time.Now()
			say("a last line\n") // within the second
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("the client was not disconnected")
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) || time.Since(start) < 900*time.Millisecond {
				t.Error(err, time.Since(start))
			}
		})
	}
}

func TestChoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var mu mutex.Mutex
		_ = mu.LockContext(t.Context())
		lock, usual := make(chan struct{}, 1), &answerUsual{done: make(chan struct{})}
		lock <- struct{}{}
		answer := promise.New[string]()
		for _, want := range []string{"late", "context deadline exceeded", "locked", "answer"} {
			on := t.Context()
			switch want {
			case "context deadline exceeded":
				on = ctx
			case "locked":
				mu.Unlock()
				<-lock
			case "answer":
				_ = mu.LockContext(on)
				lock <- struct{}{}
				answer.Fill("answer")
				usual.text = "answer"
				close(usual.done)
			}
			if want == "context deadline exceeded" {
				time.Sleep(time.Second)
			}
			a, errA := choose(on, answer, &mu)
			b, errB := chooseUsual(on, usual, lock)
			if errA != nil {
				a, b = errA.Error(), errB.Error()
			}
			if a != want || b != want {
				t.Errorf("%q, %q, want %q", a, b, want)
			}
		}
	})
}

func TestCrawl(t *testing.T) {
	for name, f := range map[string]func(context.Context, string, func(context.Context, string) ([]string, error)) (int, error){"braid": crawl, "usual": crawlUsual} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var most, running atomic.Int64
				pages, err := f(t.Context(), "1", func(_ context.Context, page string) ([]string, error) {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					time.Sleep(time.Second)
					n, _ := strconv.Atoi(page)
					if n > 31 {
						return []string{"1"}, nil
					}
					return []string{strconv.Itoa(2 * n), strconv.Itoa(2*n + 1)}, nil
				})
				if pages != 63 || err != nil || most.Load() > 3 {
					t.Error(pages, err, most.Load())
				}
				oops := errors.New("oops")
				if _, err := f(t.Context(), "1", func(context.Context, string) ([]string, error) { return nil, oops }); !errors.Is(err, oops) {
					t.Error(err)
				}
			})
		})
	}
}

// everywhere runs test with Braid on goroutines, on a reactor and on a pool of one worker, and the usual way with a nil Spawner.
func everywhere(t *testing.T, test func(t *testing.T, on suspend.Spawner)) {
	reactor, err := eventloop.New(eventloop.Options{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer reactor.Close()
	pool := workstealing.New(workstealing.Options{Workers: 1})
	defer pool.Close()
	for name, on := range map[string]suspend.Spawner{"usual": nil, "goroutines": suspend.Goroutines, "reactor": reactor, "pool of one": pool} {
		t.Run(name, func(t *testing.T) { test(t, on) })
	}
}

func TestPolite(t *testing.T) {
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		crawl := politeUsual
		if on != nil {
			crawl = func(ctx context.Context, start string, links func(context.Context, string) ([]string, error)) (int, error) {
				return polite(ctx, on, start, links)
			}
		}
		var all, one atomic.Int64
		begun := time.Now()
		pages, err := crawl(t.Context(), "0/1", func(ctx context.Context, page string) ([]string, error) {
			if n := all.Add(1); n > 3 {
				t.Error(n, "at a time")
			}
			defer all.Add(-1)
			if page[0] == '0' {
				if n := one.Add(1); n > 2 {
					t.Error(n, "of a host")
				}
				defer one.Add(-1)
			}
			_, number, _ := strings.Cut(page, "/")
			n, _ := strconv.Atoi(number)
			if n > 15 {
				return []string{"0/1"}, suspend.Sleep(ctx, 30*time.Millisecond)
			}
			return []string{fmt.Sprintf("%d/%d", n%2, 2*n), fmt.Sprintf("%d/%d", n%2, 2*n+1)}, nil
		})
		if pages != 31 || err != nil || time.Since(begun) < 290*time.Millisecond {
			t.Error(pages, err, time.Since(begun))
		}
		oops := errors.New("oops")
		if _, err := crawl(t.Context(), "0/1", func(context.Context, string) ([]string, error) { return nil, oops }); !errors.Is(err, oops) {
			t.Error(err)
		}
	})
}

func TestWorkers(t *testing.T) {
	type pool interface {
		submit(ctx context.Context, urgency int, run func(ctx context.Context)) error
		shutdown(ctx context.Context) error
	}
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		ctx := t.Context()
		open := func() pool {
			if on == nil {
				return newWorkersUsual(ctx, 1)
			}
			return newWorkers(ctx, on, 1)
		}
		begun, gate := promise.New[int](), promise.New[int]()
		w := open()
		require.NoError(t, w.submit(ctx, 0, func(ctx context.Context) { begun.Fill(1); _, _ = gate.Await(ctx) }))
		_, _ = begun.Await(ctx)
		var order []int
		for _, urgency := range []int{1, 3, 2} {
			require.NoError(t, w.submit(ctx, urgency, func(context.Context) { order = append(order, urgency) }))
		}
		gate.Fill(1)
		require.NoError(t, w.shutdown(ctx))
		require.Equal(t, []int{3, 2, 1}, order)
		require.Equal(t, errClosed, w.submit(ctx, 0, nil))

		w, begun = open(), promise.New[int]()
		cancelled := false
		require.NoError(t, w.submit(ctx, 0, func(ctx context.Context) {
			begun.Fill(1)
			_, err := promise.New[int]().Await(ctx)
			cancelled = err != nil
		}))
		_, _ = begun.Await(ctx)
		late, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, w.shutdown(late), context.DeadlineExceeded)
		require.True(t, cancelled)
	})
}

func TestCron(t *testing.T) {
	type jobs interface {
		every(d time.Duration, job func(ctx context.Context)) (stop func(ctx context.Context), err error)
		close() error
	}
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		var c jobs = newCronUsual(t.Context())
		if on != nil {
			c = newCron(t.Context(), on)
		}
		var running, runs [2]atomic.Int64
		start := func(i int, runsOf int) (stop func(context.Context)) {
			enough := promise.New[int]()
			stop, err := c.every(time.Millisecond, func(ctx context.Context) {
				if n := running[i].Add(1); n > 1 {
					t.Error(n, "at a time")
				}
				_ = suspend.Sleep(ctx, 2*time.Millisecond)
				if runs[i].Add(1) == int64(runsOf) {
					enough.Fill(1)
				}
				running[i].Add(-1)
			})
			require.NoError(t, err)
			_, _ = enough.Await(t.Context())
			return stop
		}
		start(0, 3)(t.Context())
		n := runs[0].Load()
		start(1, 3)
		require.Equal(t, n, runs[0].Load(), "it was stopped")
		require.NoError(t, c.close())
		require.Zero(t, running[1].Load(), "close waits")
		_, err := c.every(time.Hour, nil)
		require.Error(t, err)
	})
}

// The two differ in a request for more than there is.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, newMemory(4).use(ctx, 5, func() {}), semaphore.ErrTooLarge)
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, newMemoryUsual(4).use(ctx, 5, func() {}), context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

// Both load each author once. But only ours has predictable batches: they do not depend on a timer.
func TestLoader(t *testing.T) {
	books := []int{101, 7, 230, 7, 9}
	want := []int{1, 7, 30, 7, 9}
	usual, ours := new(store), new(store)
	got, err := authorsUsual(t.Context(), usual, books)
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = authors(t.Context(), authorsOf(ours), books)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, [][]int{{101, 7, 230, 9}}, ours.batches)
}

// engine runs a server with two event loops, and passes its connections to handle.
type engine struct {
	gnet.EventHandler
	started chan gnet.Engine
}

func (e *engine) OnBoot(g gnet.Engine) gnet.Action { e.started <- g; return gnet.None }

func TestServer(t *testing.T) {
	pool, err := ants.NewPool(4)
	require.NoError(t, err)
	defer pool.Release()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ours := &server{ctx: ctx, pool: workstealing.New(workstealing.Options{Workers: 2})}
	for name, handler := range map[string]gnet.EventHandler{"usual": &serverUsual{pool: pool}, "braid": ours} {
		t.Run(name, func(t *testing.T) {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := free.Addr().String()
			require.NoError(t, free.Close())
			e := &engine{handler, make(chan gnet.Engine, 1)}
			ended := make(chan error, 1)
			go func() {
				ended <- gnet.Run(e, "tcp://"+addr, gnet.WithNumEventLoop(2), gnet.WithLogLevel(logging.ErrorLevel))
			}()
			g := <-e.started
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					c, err := net.Dial("tcp", addr)
					for err != nil { // the listener opens after OnBoot
						c, err = net.Dial("tcp", addr)
					}
					defer c.Close()
					_ = c.SetDeadline(time.Now().Add(20 * time.Second))
					_, err = c.Write([]byte("a\nbb\nccc\ndddd\n"))
					in := bufio.NewScanner(c)
					var got []string
					for len(got) < 4 && in.Scan() {
						got = append(got, in.Text())
					}
					if name == "usual" {
						slices.Sort(got) // the order is not guaranteed
					}
					if err != nil || strings.Join(got, " ") != "1 2 3 4" {
						t.Error(name, got, err, in.Err())
					}
				})
			}
			wg.Wait()
			if name == "braid" {
				cancel()
				require.NoError(t, ours.close())
			}
			require.NoError(t, g.Stop(context.Background()))
			require.NoError(t, <-ended)
		})
	}
}
