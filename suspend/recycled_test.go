package suspend_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// A recycled context belongs to a request. After the request, the framework reuses the context, and its methods panic.
type recycled struct {
	in   context.Context
	back atomic.Bool
	used atomic.Int64 // the number of calls since then
}

func (c *recycled) call() context.Context {
	if c.back.Load() {
		c.used.Add(1)
		panic("a context is used after its request")
	}
	return c.in
}

func (c *recycled) Deadline() (time.Time, bool) { return c.call().Deadline() }
func (c *recycled) Done() <-chan struct{}       { return c.call().Done() }
func (c *recycled) Err() error                  { return c.call().Err() }
func (c *recycled) Value(key any) any           { return c.call().Value(key) }

// The registration of a wait outlives the context's request. When it is withdrawn, the panic of the context must not harm the
// next wait, the end of the task or, on a scheduler without OnPanic, the process.
func TestARecycledContextHarmsNoLaterCall(t *testing.T) {
	request, end := context.WithCancel(bg)
	defer end()
	other, endOther := context.WithCancel(bg)
	defer endOther()
	limitedTo2 := schedtest.Scheduler{Name: "limited", Open: func() (suspend.Spawner, func()) {
		s := limited.New(2, limited.Options{})
		return s, func() { _ = s.Close() }
	}}
	for _, on := range append(schedtest.All, limitedTo2) {
		for name, next := range map[string]func(p *promise.Promise[int]) error{
			"the end of the task": func(*promise.Promise[int]) error { return nil },
			"a wait with another": func(p *promise.Promise[int]) error { _, err := p.Await(other); return err },
			"a lazy wait":         func(p *promise.Promise[int]) error { _, err := p.Await(suspend.Lazily(other)); return err },
			"a Select": func(p *promise.Promise[int]) error {
				_, err := suspend.Select(other, suspend.CaseOf(p.AwaitOp()), suspend.CaseOf(suspend.After(time.Hour)))
				return err
			},
		} {
			t.Run(on.Name+"/"+name, func(t *testing.T) {
				defer schedtest.Within(t, schedtest.Deadline)()
				s, closeAll := on.Open()
				var used int64
				for range 3 {
					c := &recycled{in: request}
					waits, second, ended := make(chan suspend.Resumer[int], 1), promise.New[int](), make(chan error, 1)
					require.NoError(t, s.Go(func() {
						_, err := suspend.Suspend(c, func(r suspend.Resumer[int]) (int, bool) {
							waits <- r // the task has registered
							return 0, false
						})
						c.back.Store(true)
						if ended <- err; err == nil {
							ended <- next(second)
						}
					}))
					(<-waits).Resume(1, nil)
					require.NoError(t, <-ended)
					_ = second.Fill(2)
					require.NoError(t, <-ended)
					schedtest.Run(t, s, func() {}) // another task on the same coroutine
					used += c.used.Load()
				}
				closeAll()
				if on.Name != "goroutines" { // goroutines keep no registration
					require.NotZero(t, used, "no registration was taken back")
				}
			})
		}
	}
}

// If the context panics when a Then withdraws its registration, the panic is dropped.
func TestARecycledContextHarmsNoThen(t *testing.T) {
	request, end := context.WithCancel(bg)
	defer end()
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for _, op := range []func(p *promise.Promise[int], c context.Context) suspend.Op[int]{
			func(p *promise.Promise[int], _ context.Context) suspend.Op[int] { return p.AwaitOp() },
			func(p *promise.Promise[int], c context.Context) suspend.Op[int] {
				return suspend.Choose(p.AwaitOp(), suspend.Map(suspend.Done(c), func(struct{}, error) (int, error) { return 0, nil }))
			},
		} {
			c, p, got := &recycled{in: request}, promise.New[int](), 0
			suspend.Then(c, op(p, c), s, func(v int, err error) { got = v })
			c.back.Store(true)
			_ = p.Fill(3)
			schedtest.Settle()
			require.Equal(t, 3, got)
			require.NotZero(t, c.used.Load(), "no registration was taken back")
		}
	})
}
