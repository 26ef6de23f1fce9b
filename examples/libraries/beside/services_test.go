package beside

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// start starts f on a scheduler, or the usual way, and returns a function that blocks until f has ended.
func start(on suspend.Spawner, f func()) (wait func()) {
	if on == nil {
		on = suspend.Goroutines
	}
	ended := make(chan struct{})
	_ = on.Go(func() {
		defer close(ended)
		f()
	})
	return func() { <-ended }
}

// Tasks wait at a gate until it is open.
type gate struct{ promise.Promise[int] }

func (g *gate) open() { g.Fill(1) }

func (g *gate) pass(ctx context.Context) error { _, err := g.Await(ctx); return err }

func TestKeep(t *testing.T) {
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		for keep, want := range map[time.Duration]int64{time.Hour: 1, time.Nanosecond: 2} {
			var loads atomic.Int64
			load := func(ctx context.Context, path string) (string, error) { loads.Add(1); return path, nil }
			var c pageCache = newCacheUsual(load, keep)
			if on != nil {
				c = newCache(load, keep)
			}
			start(on, func() {
				for range 2 {
					if text, err := c.get(t.Context(), "/a"); text != "/a" || err != nil {
						t.Error(text, err)
					}
					_ = suspend.Sleep(t.Context(), time.Millisecond)
				}
			})()
			require.Equal(t, want, loads.Load())
		}
	})
}

func TestHub(t *testing.T) {
	type room interface {
		join() (serve func(ctx context.Context, write func(ctx context.Context, m string) error) error)
		say(ctx context.Context, m string) error
		close()
	}
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		ctx := t.Context()
		var h room = new(hubUsual)
		if on != nil {
			h = new(hub)
		}
		var begun, goOn gate
		var slowly []string
		heard := chanx.New[string](1)
		fast, slow := h.join(), h.join()
		fastEnds := start(on, func() { require.Error(t, fast(ctx, heard.Send)) })
		slowEnds := start(on, func() {
			require.Error(t, slow(ctx, func(ctx context.Context, m string) error {
				slowly = append(slowly, m)
				begun.open()
				return goOn.pass(ctx)
			}))
		})
		for _, m := range []string{"a", "b", "c", "d", "e"} { // the slow client is writing one message, and has room for two
			require.NoError(t, h.say(ctx, m))
			got, err := heard.Recv(ctx)
			require.NoError(t, err)
			require.Equal(t, m, got)
			require.NoError(t, begun.pass(ctx))
		}
		goOn.open()
		slowEnds()
		require.Equal(t, []string{"a", "b", "c"}, slowly)
		h.close()
		fastEnds()
		require.Error(t, h.say(ctx, "f"))
	})
}

func TestPubsub(t *testing.T) {
	type topics interface {
		publish(ctx context.Context, topic string, v int) error
		subscribe(topic string) (recv func(ctx context.Context) (int, error), leave func())
	}
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		ctx := t.Context()
		var p topics = new(pubsubUsual)
		if on != nil {
			p = new(pubsub)
		}
		var last gate
		quick, leaveQuick := p.subscribe("a")
		slow, leaveSlow := p.subscribe("a")
		other, leaveOther := p.subscribe("b")
		publish := start(on, func() {
			for i := range 5 {
				require.NoError(t, p.publish(ctx, "a", i))
			}
		})
		recv := func(recv func(context.Context) (int, error)) {
			for i := range 5 {
				v, err := recv(ctx)
				require.NoError(t, err)
				require.Equal(t, i, v)
			}
		}
		read := start(on, func() { recv(quick); last.open() })
		recv(slow)
		publish()
		read()
		require.NoError(t, last.pass(ctx))
		require.NoError(t, p.publish(ctx, "a", 5)) // the queue has room for one
		late, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.publish(late, "a", 6), context.DeadlineExceeded)
		_, err := other(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		publish = start(on, func() { require.NoError(t, p.publish(ctx, "a", 7)) }) // waits for the subscribers, which leave
		leaveQuick()
		leaveSlow()
		leaveOther()
		publish()
		_, err = slow(ctx)
		for err == nil {
			_, err = slow(ctx)
		}
	})
}

// A link is a conn for tests.
type link struct{ closed atomic.Bool }

func (l *link) close() { l.closed.Store(true) }

func TestConns(t *testing.T) {
	type pool interface {
		get(ctx context.Context) (conn, error)
		put(c conn, broken bool)
		close()
	}
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		ctx := t.Context()
		var dialled []*link
		down := errors.New("down")
		dial := func(context.Context) (conn, error) {
			if len(dialled) == 0 {
				dialled = append(dialled, nil)
				return nil, down
			}
			dialled = append(dialled, new(link))
			return dialled[len(dialled)-1], nil
		}
		var p pool = newConnsUsual(2, dial)
		if on != nil {
			p = newConns(2, dial)
		}
		_, err := p.get(ctx)
		require.Equal(t, down, err)
		one, err := p.get(ctx)
		require.NoError(t, err)
		two, err := p.get(ctx)
		require.NoError(t, err)
		get := start(on, func() {
			again, err := p.get(ctx)
			require.NoError(t, err)
			require.Same(t, one, again)
		})
		p.put(one, false)
		get()
		late, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = p.get(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		p.put(two, true)
		require.True(t, two.(*link).closed.Load())
		three, err := p.get(ctx)
		require.NoError(t, err)
		require.Len(t, dialled, 4)
		p.put(three, false)
		get = start(on, func() { // a second call may be necessary, which finds the pool closed
			for {
				if _, err := p.get(ctx); err != nil {
					return
				}
			}
		})
		p.close()
		get()
		p.put(one, false)
		require.True(t, one.(*link).closed.Load())
		_, err = p.get(ctx)
		require.Error(t, err)
	})
}

func TestPipeline(t *testing.T) {
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		type step = func(ctx context.Context, page string) (string, error)
		run := func(pages []string, fetch, parse, store step) (err error) {
			start(on, func() {
				if on == nil {
					err = pipelineUsual(t.Context(), slices.Values(pages), fetch, parse, store)
				} else {
					err = pipeline(t.Context(), on, slices.Values(pages), fetch, parse, store)
				}
			})()
			return err
		}
		steps := func(most int64) (step, *sync.Map) {
			var running atomic.Int64
			seen := new(sync.Map)
			return func(_ context.Context, page string) (string, error) {
				if n := running.Add(1); n > most {
					t.Error(n, "at a time, of", most)
				}
				defer running.Add(-1)
				suspend.Yield()
				seen.Store(page, true)
				return page + "!", nil
			}, seen
		}
		var pages []string
		for i := range 50 {
			pages = append(pages, fmt.Sprint(i))
		}
		fetch, _ := steps(8)
		parse, _ := steps(2)
		store, stored := steps(1)
		require.NoError(t, run(pages, fetch, parse, store))
		for _, page := range pages {
			_, ok := stored.Load(page + "!!")
			require.True(t, ok, page)
		}
		oops := errors.New("oops")
		require.ErrorIs(t, run(pages, fetch, func(context.Context, string) (string, error) { return "", oops }, store), oops)
	})
}

// A term is a lease for tests.
type term struct {
	of *atomic.Value // the holder
	me string
}

func (l term) take() (held bool, err error) {
	return l.of.CompareAndSwap("", l.me) || l.of.Load() == l.me, nil
}

func TestLeader(t *testing.T) {
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		var holder atomic.Value
		holder.Store("")
		stand := func(ctx context.Context, me string, lead func(ctx context.Context) error) (wait func() error) {
			var err error
			ended := start(on, func() {
				if on == nil {
					err = campaignUsual(ctx, term{&holder, me}, time.Millisecond, lead)
				} else {
					err = campaign(ctx, on, term{&holder, me}, time.Millisecond, lead)
				}
			})
			return func() error { ended(); return err }
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var aLeads, aEnds, bLeads gate
		a := stand(ctx, "a", func(ctx context.Context) error {
			aLeads.open()
			err := new(gate).pass(ctx)
			aEnds.open()
			return err
		})
		require.NoError(t, aLeads.pass(ctx))
		b := stand(ctx, "b", func(context.Context) error { bLeads.open(); return nil })
		holder.Store("b")
		require.NoError(t, aEnds.pass(ctx))
		require.NoError(t, bLeads.pass(ctx))
		require.NoError(t, b())
		stop()
		require.ErrorIs(t, a(), context.Canceled)
	})
}

func TestUploads(t *testing.T) {
	everywhere(t, func(t *testing.T, on suspend.Spawner) {
		ctx := t.Context()
		var goOn gate
		var running atomic.Int64
		save := func(ctx context.Context, _ string) (none struct{}, err error) {
			if n := running.Add(1); n > 4 {
				t.Error(n, "at a time")
			}
			defer running.Add(-1)
			return none, goOn.pass(ctx)
		}
		ours, usual := newUploads(on, save), newUploadsUsual(save)
		upload, inside := usual.upload, func() int { return len(usual.places) }
		if on != nil {
			upload, inside = ours.upload, func() int { s := ours.disk.Stats(); return s.Waiting + s.Busy }
		}
		var waits []func()
		for i := range 12 {
			waits = append(waits, start(on, func() {
				if status := upload(ctx, fmt.Sprint(i/2), "file"); status != http.StatusCreated {
					t.Error(status)
				}
			}))
		}
		schedtest.Eventually(t, "all are inside", func() bool { return inside() == 12 })
		require.Equal(t, http.StatusTooManyRequests, upload(ctx, "3", "file"))
		require.Equal(t, http.StatusServiceUnavailable, upload(ctx, "another", "file"))
		goOn.open()
		for _, wait := range waits {
			wait()
		}
		require.Equal(t, http.StatusCreated, upload(ctx, "3", "file"))
	})
}

func TestJournal(t *testing.T) {
	type appender interface {
		add(ctx context.Context, record string) error
		close(ctx context.Context) error
	}
	for name, open := range map[string]func(writer) appender{
		"braid": func(w writer) appender { return newJournal(w) },
		"usual": func(w writer) appender { return newJournalUsual(w) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var batches []int
				full := errors.New("the disk is full")
				j := open(func(records []string) error {
					time.Sleep(10 * time.Millisecond)
					if batches = append(batches, len(records)); len(batches) == 3 {
						return full
					}
					return nil
				})
				var all sync.WaitGroup
				for range 150 {
					all.Go(func() {
						if err := j.add(t.Context(), "x"); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				begun := time.Now()
				require.ErrorIs(t, j.add(t.Context(), "y"), full)
				require.Equal(t, 11*time.Millisecond, time.Since(begun))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, j.add(ctx, "z"), context.DeadlineExceeded)
				require.NoError(t, j.close(t.Context()))
				require.Equal(t, []int{100, 50, 1, 1}, batches)
				require.Error(t, j.add(t.Context(), "late"))
			})
		})
	}
}
