package migration

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	xsemaphore "golang.org/x/sync/semaphore"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/semaphore"
)

type queue interface {
	put(job int)
	take(ctx context.Context) (int, error)
}

// Takers with short patience lose no job to those with long patience.
func TestCond(t *testing.T) {
	for name, make := range map[string]func() queue{
		"before": func() queue { return newCondBefore() },
		"after":  func() queue { return newCondAfter() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := make()
				var taken, cancelled atomic.Int64
				var wg sync.WaitGroup
				for i := range 200 {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if i%2 == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*time.Millisecond)
					}
					wg.Go(func() {
						defer cancel()
						switch _, err := q.take(ctx); {
						case err == nil:
							taken.Add(1)
						case errors.Is(err, context.DeadlineExceeded):
							cancelled.Add(1)
						}
					})
				}
				puts := 0
				for range 150 {
					time.Sleep(time.Millisecond)
					q.put(puts)
					puts++
				}
				time.Sleep(time.Second) // all short ones have ended
				for taken.Load()+cancelled.Load() < 200 {
					q.put(puts)
					puts++
					synctest.Wait()
				}
				wg.Wait()
				for range puts - int(taken.Load()) { // jobs are left if too many gave up; a lost one would hang here
					_, err := q.take(t.Context())
					require.NoError(t, err)
				}
				require.NotZero(t, cancelled.Load())
			})
		})
	}
}

func TestLock(t *testing.T) {
	before, after := newLockBefore(), new(lockAfter)
	for name, add := range map[string]func(context.Context, int) error{"before": before.add, "after": after.add} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					for range 100 {
						if err := add(t.Context(), 1); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
	require.Equal(t, 10_000, before.total)
	require.Equal(t, 10_000, after.total)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, after.add(ended, 1), context.Canceled)
	require.Equal(t, 10_000, after.total)
}

// What differs: a request for more than there is.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, memoryAfter{semaphore.New(4)}.use(ctx, 5, func() {}), semaphore.ErrTooLarge)
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, memoryBefore{xsemaphore.NewWeighted(4)}.use(ctx, 5, func() {}), context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestGroup(t *testing.T) {
	var urls []string
	for i := range 20 {
		urls = append(urls, fmt.Sprint("page", i))
	}
	var running, most atomic.Int64
	slow := func(ctx context.Context, url string) (string, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		select {
		case <-time.After(time.Second):
			return strings.ToUpper(url), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	broken := errors.New("broken")
	fails := func(ctx context.Context, url string) (string, error) {
		if url == "page7" {
			return "", broken
		}
		return slow(ctx, url)
	}
	for name, pages := range map[string]func(context.Context, []string, fetchFunc) ([]string, error){
		"before": pagesBefore, "after": pagesAfter,
		"run": func(ctx context.Context, urls []string, fetch fetchFunc) (got []string, err error) {
			var mu sync.Mutex
			err = mirrorAfter(ctx, urls, fetch, func(_ context.Context, page string) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, page)
				return nil
			})
			slices.SortFunc(got, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
			return got, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				most.Store(0)
				start := time.Now()
				got, err := pages(t.Context(), urls, slow)
				require.NoError(t, err)
				require.Equal(t, strings.Split(strings.ToUpper(strings.Join(urls, " ")), " "), got)
				require.EqualValues(t, 4, most.Load())
				require.Equal(t, 5*time.Second, time.Since(start)) // 20 pages, 4 at a time
				_, err = pages(t.Context(), urls, fails)
				require.ErrorIs(t, err, broken)
				require.Zero(t, running.Load())
			})
		})
	}
	t.Run("stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			most.Store(0)
			page, err := firstLong(t.Context(), slices.Values(urls), func(ctx context.Context, url string) (string, error) {
				page, err := slow(ctx, url)
				if url == "page5" {
					page = strings.Repeat("long ", 10)
				}
				return page, err
			})
			require.NoError(t, err)
			require.Len(t, page, 50)
			require.LessOrEqual(t, most.Load(), int64(4))
			require.Zero(t, running.Load())
		})
	})
}

// Both load each author once. Only the batches of the second are sure: a timer has no say in them.
func TestLoader(t *testing.T) {
	books := []int{101, 7, 230, 7, 9}
	want := []int{1, 7, 30, 7, 9}
	before, after := new(store), new(store)
	got, err := authorsBefore(t.Context(), before, books)
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = authorsAfter(t.Context(), authorsOf(after), books)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, [][]int{{101, 7, 230, 9}}, after.batches)
}

// engine runs a server with two event loops, and hands out connections to it.
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
	after := &serverAfter{ctx: ctx, pool: workstealing.New(workstealing.Options{Workers: 2})}
	for name, server := range map[string]gnet.EventHandler{"before": &serverBefore{pool: pool}, "after": after} {
		t.Run(name, func(t *testing.T) {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := free.Addr().String()
			require.NoError(t, free.Close())
			e := &engine{server, make(chan gnet.Engine, 1)}
			ended := make(chan error, 1)
			go func() {
				ended <- gnet.Run(e, "tcp://"+addr, gnet.WithNumEventLoop(2), gnet.WithLogLevel(logging.ErrorLevel))
			}()
			g := <-e.started
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					c, err := net.Dial("tcp", addr)
					for err != nil { // between OnBoot and the listener
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
					if name == "before" {
						slices.Sort(got) // the order is not kept
					}
					if err != nil || strings.Join(got, " ") != "1 2 3 4" {
						t.Error(name, got, err, in.Err())
					}
				})
			}
			wg.Wait()
			if name == "after" {
				cancel()
				require.NoError(t, after.close())
			}
			require.NoError(t, g.Stop(context.Background()))
			require.NoError(t, <-ended)
		})
	}
}
