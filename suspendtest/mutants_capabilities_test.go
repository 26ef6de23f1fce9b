package suspendtest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func init() {
	schedulerMutants = append(schedulerMutants,
		mutant{"a Hold that holds nothing", onBaton(func(b *Baton) suspend.Spawner { return loose{b} }), suspendtest.Options{},
			[]string{"Holder/close-waits-for-the-release"}},
		mutant{"a wrapper that its tasks do not return", onBaton(func(b *Baton) suspend.Spawner { return wrapped{b} }), suspendtest.Options{},
			[]string{"Within/a-task-is-within-its-scheduler"}},
		mutant{"a timer that calls inline", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: func(_ time.Duration, f func()) func() bool { f(); return never }}
		}), suspendtest.Options{}, []string{"Timers/under-locks"}},
		mutant{"a timer that calls early", onBaton(func(b *Baton) suspend.Spawner {
			var passed atomic.Int64 // each timer advances the clock by a tenth of its duration
			return &timed{
				Baton: b,
				after: func(d time.Duration, f func()) func() bool {
					return forbidden(0, func() { passed.Add(int64(d / 10)); f() })
				},
				now: func() time.Time { return time.Unix(1, passed.Load()) },
			}
		}), suspendtest.Options{}, []string{"Timers/calls-once-and-not-early"}},
		mutant{"a timer that calls twice", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: func(d time.Duration, f func()) func() bool { forbidden(d, f); return forbidden(d, f) }}
		}), suspendtest.Options{}, []string{"Timers/calls-once-and-not-early", "Timers/stop-prevents-the-call-or-says-no"}},
		mutant{"a timer whose callback is a task", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: func(d time.Duration, f func()) func() bool {
				return time.AfterFunc(d, func() { _ = b.Go(f) }).Stop
			}}
		}), suspendtest.Options{}, []string{"Timers/a-callback-must-not-suspend"}},
		mutant{"a timer whose stop is always true", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: func(d time.Duration, f func()) func() bool {
				stop := forbidden(d, f)
				return func() bool { stop(); return true }
			}}
		}), suspendtest.Options{}, []string{"Timers/stop-prevents-the-call-or-says-no"}},
		mutant{"a timer whose stop waits for the callback", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: func(d time.Duration, f func()) func() bool {
				over := make(chan struct{})
				stop := forbidden(d, func() { defer close(over); f() })
				return func() bool {
					if !stop() {
						<-over
						return false
					}
					return true
				}
			}}
		}), suspendtest.Options{}, []string{"Timers/under-locks"}},
		mutant{"a clock that goes back", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: forbidden, now: func() time.Time { return time.Unix(0, -time.Now().UnixNano()) }}
		}), suspendtest.Options{}, []string{"Clock/does-not-go-back"}},
		mutant{"a clock that stands", onBaton(func(b *Baton) suspend.Spawner {
			return &timed{Baton: b, after: forbidden, now: func() time.Time { return time.Unix(1, 0) }}
		}), suspendtest.Options{}, []string{"Clock/does-not-go-back"}},
		mutant{"a Watcher that calls inline", onBaton(func(b *Baton) suspend.Spawner {
			return &watching{b, func(ctx context.Context, f func()) func() bool {
				if ctx.Err() != nil {
					f()
					return never
				}
				return context.AfterFunc(ctx, func() { suspend.Bind(nil, f) })
			}}
		}), suspendtest.Options{}, []string{"Watcher/tells-the-end-of-a-context-once"}},
		mutant{"a Watcher that does not stop", onBaton(func(b *Baton) suspend.Spawner {
			return &watching{b, func(ctx context.Context, f func()) func() bool {
				context.AfterFunc(ctx, func() { suspend.Bind(nil, f) })
				var stopped bool
				return func() bool { first := !stopped; stopped = true; return first }
			}}
		}), suspendtest.Options{}, []string{"Watcher/tells-the-end-of-a-context-once"}},
		mutant{"a Watcher whose calls are tasks", onBaton(func(b *Baton) suspend.Spawner {
			return &watching{b, func(ctx context.Context, f func()) func() bool {
				return context.AfterFunc(ctx, func() { _ = b.Go(f) })
			}}
		}), suspendtest.Options{}, []string{"Watcher/tells-the-end-of-a-context-once"}},
		mutant{"a source of one number", onBaton(func(b *Baton) suspend.Spawner { return constant{b} }), suspendtest.Options{},
			[]string{"Rand/differs-and-is-for-all"}},
		mutant{"a Block that refuses", tasks(func(t *patch) { t.spawner = refusing{t.s} }), suspendtest.Options{},
			[]string{"Blocking/after-close"}},
	)
}

type loose struct{ *Baton }

func (loose) Hold() (release func(), err error) { return func() {}, nil }

type wrapped struct{ suspend.Spawner }

type refusing struct{ suspend.Spawner }

// Block fails with an error other than ErrClosed. After ErrClosed, Blocking would use another goroutine.
func (refusing) Block(func()) error { return errors.New("full") }

// timed is a Baton with timers and, if now is set, a clock.
type timed struct {
	*Baton
	after func(d time.Duration, f func()) (stop func() bool)
	now   func() time.Time
}

func (s *timed) AfterFunc(d time.Duration, f func()) func() bool { return s.after(d, f) }

func (s *timed) Now() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

// forbidden is a correct AfterFunc, whose callbacks must not suspend.
func forbidden(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, func() { suspend.Bind(nil, f) }).Stop
}

func never() bool { return false }

// watching is a Baton with a Watcher.
type watching struct {
	*Baton
	after func(ctx context.Context, f func()) (stop func() bool)
}

func (s *watching) AfterDone(ctx context.Context, f func()) func() bool { return s.after(ctx, f) }

type constant struct{ *Baton }

func (constant) Uint64() uint64 { return 4 }
