package keyed_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// inBubble hides the deadline of t: rapid asks for it, but a bubble forbids that.
type inBubble struct{ rapid.TB }

// A call is an Acquire or a Get on a goroutine of its own.
type call struct {
	cancel context.CancelFunc
	ended  bool
	v      int
	err    error
}

func begin(f func(ctx context.Context) (int, error)) *call {
	c := new(call)
	ctx, cancel := context.WithCancel(bg)
	c.cancel = cancel
	go func() {
		c.v, c.err = f(ctx)
		c.ended = true
	}()
	synctest.Wait()
	return c
}

// leave cancels one of the waiting calls, if there is one, and removes it from the list.
func leave(rt *rapid.T, waiting *[]*call) bool {
	if len(*waiting) == 0 {
		return false
	}
	i := rapid.IntRange(0, len(*waiting)-1).Draw(rt, "i")
	c := (*waiting)[i]
	c.cancel()
	synctest.Wait()
	require.True(rt, c.ended)
	require.ErrorIs(rt, c.err, context.Canceled)
	*waiting = slices.Delete(*waiting, i, i+1)
	return true
}

// ended requires that the calls have ended with v and err.
func ended(rt *rapid.T, v int, err error, calls ...*call) {
	for _, c := range calls {
		require.True(rt, c.ended)
		require.Equal(rt, v, c.v)
		require.Equal(rt, err, c.err)
		c.cancel()
	}
}

// Random sequences of calls agree with a count of holders and a queue for each key.
func TestLocksAgainstModel(t *testing.T) {
	for name, anew := range locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rapid.Check(inBubble{t}, func(rt *rapid.T) {
					l, n := anew()
					var held [2]int64
					var waiting [2][]*call
					defer func() {
						for key := range waiting {
							for _, c := range waiting[key] {
								c.cancel()
							}
						}
						synctest.Wait()
					}()
					key := func() int { return rapid.IntRange(0, 1).Draw(rt, "key") }
					rt.Repeat(map[string]func(*rapid.T){
						"acquire": func(rt *rapid.T) {
							k := key()
							c := begin(func(ctx context.Context) (int, error) { return 0, l.Acquire(ctx, k) })
							if held[k] == n {
								waiting[k] = append(waiting[k], c)
								return
							}
							held[k]++
							ended(rt, 0, nil, c)
						},
						"try": func(rt *rapid.T) {
							k := key()
							require.Equal(rt, held[k] < n, l.TryAcquire(k))
							held[k] = min(held[k]+1, n)
						},
						"leave": func(rt *rapid.T) { leave(rt, &waiting[key()]) },
						"release": func(rt *rapid.T) {
							k := key()
							if held[k] == 0 {
								require.Panics(rt, func() { l.Release(k) })
								return
							}
							l.Release(k)
							synctest.Wait()
							if len(waiting[k]) == 0 {
								held[k]--
								return
							}
							ended(rt, 0, nil, waiting[k][0])
							waiting[k] = waiting[k][1:]
						},
						"": func(rt *rapid.T) {
							used := 0
							for k := range held {
								used += int(min(held[k], 1))
								for _, c := range waiting[k] {
									require.False(rt, c.ended)
								}
							}
							require.Equal(rt, used, l.Len())
						},
					})
				})
			})
		})
	}
}

// A load is a call of the function of the Cache.
type load struct {
	v       int
	over    bool
	ctx     context.Context
	result  promise.Promise[int]
	waiting []*call
	until   time.Time // zero while the load runs
}

// Random sequences of calls agree with a map of loads.
func TestCacheAgainstModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			ttl := time.Duration(rapid.IntRange(0, 3).Draw(rt, "ttl")) * time.Second
			var begun []*load // all loads so far
			entries := map[int]*load{}
			c := keyed.NewCache(func(ctx context.Context, _ int) (int, error) {
				l := &load{v: len(begun), ctx: ctx}
				begun = append(begun, l)
				return l.result.Await(bg)
			}, keyed.CacheOptions{TTL: ttl})
			defer func() {
				for _, l := range begun {
					_ = l.result.Fail(errOops)
				}
				synctest.Wait()
			}()
			key := func() int { return rapid.IntRange(0, 2).Draw(rt, "key") }
			drop := func(l *load) {
				for k := range entries {
					if entries[k] == l {
						delete(entries, k)
					}
				}
			}
			pick := func(of func(*load) bool) *load {
				var some []*load
				for _, l := range begun {
					if of(l) {
						some = append(some, l)
					}
				}
				if len(some) == 0 {
					return nil
				}
				return rapid.SampledFrom(some).Draw(rt, "load")
			}
			rt.Repeat(map[string]func(*rapid.T){
				"get": func(rt *rapid.T) {
					k, before := key(), len(begun)
					got := begin(func(ctx context.Context) (int, error) { return c.Get(ctx, k) })
					for _, l := range entries {
						if l.over && !time.Now().Before(l.until) {
							drop(l)
						}
					}
					switch l := entries[k]; {
					case l == nil:
						require.Len(rt, begun, before+1)
						l = begun[before]
						entries[k], l.waiting = l, []*call{got}
					case l.over:
						ended(rt, l.v, nil, got)
					default:
						require.Len(rt, begun, before)
						l.waiting = append(l.waiting, got)
					}
				},
				"leave": func(rt *rapid.T) {
					if l := pick(func(l *load) bool { return len(l.waiting) > 0 }); l != nil && leave(rt, &l.waiting) && len(l.waiting) == 0 {
						drop(l)
					}
				},
				"end": func(rt *rapid.T) {
					l := pick(func(l *load) bool { return !l.over })
					if l == nil {
						return
					}
					v, err := l.v, error(nil)
					if rapid.Bool().Draw(rt, "fails") {
						v, err = 0, errOops
					}
					require.True(rt, l.result.Resolve(v, err))
					synctest.Wait()
					ended(rt, v, err, l.waiting...)
					l.over, l.waiting, l.until = true, nil, time.Now().Add(ttl)
					if err != nil || ttl == 0 {
						drop(l)
					}
				},
				"forget": func(*rapid.T) {
					k := key()
					c.Forget(k)
					delete(entries, k)
				},
				"time": func(rt *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 2).Draw(rt, "s")) * time.Second) },
				"": func(rt *rapid.T) {
					require.Equal(rt, len(entries), size(c))
					for _, l := range begun {
						require.Equal(rt, l.over || len(l.waiting) == 0, errors.Is(suspend.Err(l.ctx), context.Canceled))
						for _, w := range l.waiting {
							require.False(rt, w.ended)
						}
					}
				},
			})
		})
	})
}
