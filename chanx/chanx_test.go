package chanx_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

func TestSendRecv(t *testing.T) {
	for _, capacity := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				c := chanx.New[int](capacity)
				schedtest.Run(t, s, func() {
					_ = s.Go(func() {
						for i := range 1000 {
							if err := c.Send(bg, i); err != nil {
								t.Error(err)
							}
						}
						_ = c.Close()
					})
					for i := range 1000 {
						if v, err := c.Recv(bg); v != i || err != nil {
							t.Fatalf("Recv = %d, %v, want %d", v, err, i)
						}
					}
					if v, err := c.Recv(bg); v != 0 || err != chanx.ErrClosed {
						t.Errorf("Recv = %d, %v", v, err)
					}
				})
			})
		})
	}
}

func TestTry(t *testing.T) {
	c := chanx.New[int](2)
	check := func(op string, ok bool, err error, wantOK bool, wantErr error) {
		t.Helper()
		if ok != wantOK || err != wantErr {
			t.Errorf("%s = %v, %v, want %v, %v", op, ok, err, wantOK, wantErr)
		}
	}
	recv := func(want int, wantOK bool, wantErr error) {
		t.Helper()
		v, ok, err := c.TryRecv()
		check("TryRecv", ok, err, wantOK, wantErr)
		if v != want {
			t.Errorf("TryRecv: %d, want %d", v, want)
		}
	}
	send := func(v int, wantOK bool, wantErr error) {
		t.Helper()
		ok, err := c.TrySend(v)
		check("TrySend", ok, err, wantOK, wantErr)
	}
	recv(0, false, nil)
	for round := range 5 { // wraps around the ring
		send(round, true, nil)
		send(-round, true, nil)
		send(100, false, nil)
		if c.Len() != 2 {
			t.Errorf("Len = %d", c.Len())
		}
		recv(round, true, nil)
		send(round+1, true, nil)
		recv(-round, true, nil)
		recv(round+1, true, nil)
		recv(0, false, nil)
	}
	send(7, true, nil)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != chanx.ErrClosed {
		t.Errorf("second Close = %v", err)
	}
	send(8, false, chanx.ErrClosed)
	if err := c.Send(bg, 8); err != chanx.ErrClosed {
		t.Errorf("Send = %v", err)
	}
	if c.Len() != 1 {
		t.Errorf("Len = %d", c.Len())
	}
	recv(7, true, nil)
	recv(0, false, chanx.ErrClosed)

	c = chanx.New[int](0)
	send(1, false, nil)
	recv(0, false, nil)
	_ = c.Close()
	send(1, false, chanx.ErrClosed)
	recv(0, false, chanx.ErrClosed)
}

func TestTryMeetsWhoWaits(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var c chanx.Chan[int] // the zero value
		_ = s.Go(func() { _ = c.Send(bg, 1) })
		schedtest.Settle()
		if v, ok, err := c.TryRecv(); v != 1 || !ok || err != nil {
			t.Errorf("TryRecv = %d, %v, %v", v, ok, err)
		}
		got := 0
		_ = s.Go(func() { got, _ = c.Recv(bg) })
		schedtest.Settle()
		if ok, err := c.TrySend(2); !ok || err != nil {
			t.Errorf("TrySend = %v, %v", ok, err)
		}
		schedtest.Settle()
		if got != 2 {
			t.Errorf("got %d", got)
		}
	})
}

func TestNegativeCapacityPanics(t *testing.T) {
	defer func() {
		if v := recover(); v != "chanx: negative capacity" {
			t.Errorf("panic %v", v)
		}
	}()
	chanx.New[int](-1)
}

func TestDoneContextFailsThoughPossible(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	c := chanx.New[int](1)
	if err := c.Send(ctx, 1); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || c.Len() != 0 {
		t.Errorf("Send = %v, Len = %d", err, c.Len())
	}
	_ = c.Send(bg, 2)
	if _, err := c.Recv(ctx); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || c.Len() != 1 {
		t.Errorf("Recv = %v, Len = %d", err, c.Len())
	}
	for v, err := range c.All(ctx) {
		if v != 0 || !errors.Is(err, cause) {
			t.Errorf("All: %d, %v", v, err)
		}
	}
	_ = c.Close()
	if err := c.Send(ctx, 3); !errors.Is(err, cause) {
		t.Errorf("Send on a closed channel, ctx done: %v", err)
	}
}

func TestServedInOrder(t *testing.T) {
	for _, capacity := range []int{0, 1, 4} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			c := chanx.New[int](capacity)
			for i := range 10 {
				_ = s.Go(func() { _ = c.Send(bg, i) })
			}
			schedtest.Settle()
			if c.Len() != capacity {
				t.Errorf("Len = %d, want %d", c.Len(), capacity)
			}
			for want := range 10 {
				if v, _ := c.Recv(bg); v != want {
					t.Fatalf("capacity %d: Recv = %d, want %d", capacity, v, want)
				}
				if want < 10-capacity && c.Len() != capacity {
					t.Errorf("a slot stays empty while senders wait")
				}
			}
			var got []int
			for i := range 10 {
				_ = s.Go(func() {
					v, _ := c.Recv(bg)
					got = append(got, 100*i+v)
				})
			}
			schedtest.Settle()
			for i := range 10 {
				_ = c.Send(bg, i)
			}
			schedtest.Settle()
			for i, v := range got {
				if v != 101*i {
					t.Fatalf("capacity %d: got %v", capacity, got)
				}
			}
		})
	}
}

// An end records a call that runs in a task of its own, and its results.
type end struct {
	v      int
	err    error
	ended  bool
	cancel context.CancelFunc
}

func start(s suspend.Spawner, f func(ctx context.Context) (int, error)) *end {
	ctx, cancel := schedtest.WithCancel()
	e := &end{cancel: cancel}
	_ = s.Go(func() {
		e.v, e.err = f(ctx)
		e.ended = true
	})
	schedtest.Settle()
	return e
}

// senders lists each way to send.
var senders = []struct {
	name string
	send func(ctx context.Context, c *chanx.Chan[int], v int) error
}{
	{"Send", func(ctx context.Context, c *chanx.Chan[int], v int) error { return c.Send(ctx, v) }},
	{"SendOp", func(ctx context.Context, c *chanx.Chan[int], v int) error {
		_, err := suspend.Do(ctx, c.SendOp(v))
		return err
	}},
	{"Select", func(ctx context.Context, c *chanx.Chan[int], v int) error {
		var other chanx.Chan[int]
		send := suspend.CaseOf(c.SendOp(v))
		won, err := suspend.Select(ctx, suspend.CaseOf(other.RecvOp()), send, suspend.CaseOf(other.SendOp(0)))
		if won == suspend.Selectable(send) {
			_, err = send.Result()
		}
		return err
	}},
}

var receivers = []struct {
	name string
	recv func(ctx context.Context, c *chanx.Chan[int]) (int, error)
}{
	{"Recv", func(ctx context.Context, c *chanx.Chan[int]) (int, error) { return c.Recv(ctx) }},
	{"RecvOp", func(ctx context.Context, c *chanx.Chan[int]) (int, error) { return suspend.Do(ctx, c.RecvOp()) }},
	{"All", func(ctx context.Context, c *chanx.Chan[int]) (int, error) {
		for v, err := range c.All(ctx) {
			return v, err
		}
		return 0, chanx.ErrClosed
	}},
	{"Select", func(ctx context.Context, c *chanx.Chan[int]) (int, error) {
		var other chanx.Chan[int]
		recv := suspend.CaseOf(c.RecvOp())
		won, err := suspend.Select(ctx, suspend.CaseOf(other.RecvOp()), recv, suspend.CaseOf(other.SendOp(0)))
		if won == suspend.Selectable(recv) {
			return recv.Result()
		}
		return 0, err
	}},
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestCancelAtEachPoint(t *testing.T) {
	for _, way := range senders {
		for _, capacity := range []int{0, 1} {
			t.Run(fmt.Sprint(way.name, capacity), func(t *testing.T) {
				schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
					c := chanx.New[int](capacity)
					if capacity > 0 {
						_ = c.Send(bg, 0)
					}
					send := func(v int) *end {
						return start(s, func(ctx context.Context) (int, error) { return 0, way.send(ctx, c, v) })
					}
					recv := func(want int) {
						t.Helper()
						if v, ok, err := c.TryRecv(); v != want || !ok || err != nil {
							t.Errorf("TryRecv = %d, %v, %v, want %d", v, ok, err, want)
						}
					}
					queued, met, after, last := send(1), send(2), send(3), send(4)
					queued.cancel()
					schedtest.Settle()
					if !queued.ended || !errors.Is(queued.err, context.Canceled) {
						t.Errorf("while queued: %+v", queued)
					}
					met.cancel() // and is still in the queue
					if capacity > 0 {
						recv(0)
					} else {
						recv(3)
					}
					after.cancel() // its value was already received
					schedtest.Settle()
					if !met.ended || !errors.Is(met.err, context.Canceled) {
						t.Errorf("at the moment of hand-over: %+v", met)
					}
					if !after.ended || after.err != nil {
						t.Errorf("after the hand-over: %+v", after)
					}
					if capacity > 0 {
						recv(3)
					}
					recv(4)
					schedtest.Settle()
					if !last.ended || last.err != nil {
						t.Errorf("the last: %+v", last)
					}
					if _, ok, _ := c.TryRecv(); ok || c.Len() != 0 {
						t.Error("something is left")
					}
				})
			})
		}
	}
	for _, way := range receivers {
		for _, capacity := range []int{0, 1} {
			t.Run(fmt.Sprint(way.name, capacity), func(t *testing.T) {
				schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
					c := chanx.New[int](capacity)
					recv := func() *end {
						return start(s, func(ctx context.Context) (int, error) { return way.recv(ctx, c) })
					}
					send := func(v int) {
						t.Helper()
						if ok, err := c.TrySend(v); !ok || err != nil {
							t.Errorf("TrySend = %v, %v", ok, err)
						}
					}
					queued, met, after, last := recv(), recv(), recv(), recv()
					queued.cancel()
					schedtest.Settle()
					if !queued.ended || !errors.Is(queued.err, context.Canceled) {
						t.Errorf("while queued: %+v", queued)
					}
					met.cancel()
					send(3)
					after.cancel()
					schedtest.Settle()
					if !met.ended || !errors.Is(met.err, context.Canceled) {
						t.Errorf("at the moment of hand-over: %+v", met)
					}
					if !after.ended || after.err != nil || after.v != 3 {
						t.Errorf("after the hand-over: %+v", after)
					}
					send(4)
					schedtest.Settle()
					if !last.ended || last.err != nil || last.v != 4 {
						t.Errorf("the last: %+v", last)
					}
					if ok, _ := c.TrySend(5); ok != (capacity > 0) {
						t.Error("a waiter is left")
					}
				})
			})
		}
	}
}

// A Select has two cases on one channel, to receive and to send. The Close resumes it as a receiver, because receivers come
// first.
func TestCloseOfAChannelWithTwoCases(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for _, sendFirst := range []bool{false, true} {
			c := chanx.New[int](0)
			recv, send := suspend.CaseOf(c.RecvOp()), suspend.CaseOf(c.SendOp(1))
			cases := []suspend.Selectable{recv, send}
			if sendFirst {
				slices.Reverse(cases)
			}
			_ = s.Go(func() { _ = c.Close() })
			won, err := suspend.SelectOrdered(bg, cases...)
			if _, closed := recv.Result(); won != recv || err != nil || closed != chanx.ErrClosed {
				t.Error(won == send, err, closed)
			}
		}
	})
}

// CloseWith resumes all waiters with its error, in order, receivers before senders. A value that was not sent is not lost.
func TestCloseWakesEverybodyInOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var order []int
		for capacity, reason := range []error{chanx.ErrClosed, nil, io.ErrUnexpectedEOF} {
			closed := cmp.Or(reason, chanx.ErrClosed)
			for _, way := range senders {
				c := chanx.New[int](capacity)
				for i := range capacity {
					_ = c.Send(bg, i)
				}
				order = nil
				var ends []*end
				for i := range 5 {
					ends = append(ends, start(s, func(ctx context.Context) (int, error) {
						defer func() { order = append(order, i) }()
						return 0, way.send(ctx, c, 10+i)
					}))
				}
				ends[2].cancel() // the third is cancelled, and still queued when the channel is closed
				if err := c.CloseWith(reason); err != nil || c.CloseWith(io.EOF) != chanx.ErrClosed {
					t.Error(err)
				}
				schedtest.Settle()
				for i, e := range ends {
					if want := map[bool]error{true: context.Canceled, false: closed}[i == 2]; !e.ended || !errors.Is(e.err, want) {
						t.Errorf("%s %d: %+v", way.name, i, e)
					}
				}
				if order = slices.DeleteFunc(order, func(i int) bool { return i == 2 }); !slices.Equal(order, []int{0, 1, 3, 4}) {
					t.Errorf("%s: woken in the order %v", way.name, order)
				}
				for i := range capacity {
					if v, err := c.Recv(bg); v != i || err != nil {
						t.Errorf("Recv = %d, %v", v, err)
					}
				}
				if _, err := c.Recv(bg); err != closed {
					t.Errorf("Recv = %v: a parked sender's value was sent", err)
				}
			}
			for _, way := range receivers {
				c := chanx.New[int](capacity)
				order = nil
				var ends []*end
				for i := range 5 {
					ends = append(ends, start(s, func(ctx context.Context) (int, error) {
						defer func() { order = append(order, i) }()
						return way.recv(ctx, c)
					}))
				}
				_ = c.CloseWith(reason)
				schedtest.Settle()
				for i, e := range ends {
					if !e.ended || e.err != closed {
						t.Errorf("%s %d: %+v", way.name, i, e)
					}
				}
				if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
					t.Errorf("%s: woken in the order %v", way.name, order)
				}
			}
		}
	})
}

// All reports why it ended, so that a loop over a channel that was closed with an error differs from one over a complete
// channel.
func TestAllHasTheReasonOfItsEnd(t *testing.T) {
	done, cancel := context.WithCancelCause(bg)
	cancel(chanx.ErrClosed)
	for name, c := range map[string]struct {
		ctx  context.Context
		end  func(c *chanx.Chan[int]) error
		want error
	}{
		"Close":                             {bg, (*chanx.Chan[int]).Close, nil},
		"CloseWith(nil)":                    {bg, func(c *chanx.Chan[int]) error { return c.CloseWith(nil) }, nil},
		"CloseWith":                         {bg, func(c *chanx.Chan[int]) error { return c.CloseWith(io.ErrUnexpectedEOF) }, io.ErrUnexpectedEOF},
		"the context, with cause ErrClosed": {done, (*chanx.Chan[int]).Close, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ch := chanx.New[int](2)
			_, _, _ = ch.Send(bg, 1), ch.Send(bg, 2), c.end(ch)
			want := []error{nil, nil}
			switch {
			case c.ctx == done:
				want = []error{c.want}
			case c.want != nil:
				want = append(want, c.want)
			}
			var got []int
			i := 0
			for v, err := range ch.All(c.ctx) {
				require.Less(t, i, len(want))
				require.ErrorIs(t, err, want[i])
				require.Equal(t, want[i] == nil, err == nil)
				if i++; err == nil {
					got = append(got, v)
				} else {
					require.Zero(t, v)
				}
			}
			require.Len(t, want, i)
			if c.ctx == bg {
				require.Equal(t, []int{1, 2}, got)
			}
		})
	}
}

func TestAll(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		c := chanx.New[int](1)
		sent := 0 // written by the producer, and read after its end
		schedtest.Run(t, s, func() {
			for v, err := range c.All(bg) {
				if v == 9 || err != nil {
					break // stops after the values that were sent
				}
			}
			if v, err := c.Recv(bg); v != 10 || err != nil {
				t.Errorf("Recv after break = %d, %v", v, err)
			}
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			n := 11
			var last error
			for v, err := range c.All(ctx) {
				switch {
				case last != nil:
					t.Errorf("%d, %v after %v", v, err, last)
				case err != nil:
					last = err
					continue
				case v != n:
					t.Errorf("%d, want %d", v, n)
				}
				if n++; n == 20 {
					cancel()
				}
			}
			if n != 20 || last != context.Canceled {
				t.Errorf("ended at %d: %v", n, last)
			}
			for v, err := range c.All(bg) {
				if v != n || err != nil {
					t.Errorf("%d, %v, want %d", v, err, n)
				}
				n++
			}
			if n != 30 {
				t.Errorf("ended at %d", n)
			}
			next, stop := suspend.Pull2(c.All(bg))
			defer stop()
			if v, err, ok := next(); ok {
				t.Errorf("next = %d, %v", v, err)
			}
		}, func() {
			for ; sent < 30; sent++ {
				if err := c.Send(bg, sent); err != nil {
					t.Error(err)
				}
			}
			_ = c.Close()
		})
	})
}

func TestSelectDoesNotMeetItself(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var c chanx.Chan[int]
		schedtest.Run(t, s, func() {
			send, recv := suspend.CaseOf(c.SendOp(1)), suspend.CaseOf(c.RecvOp())
			for _, cases := range [][]suspend.Selectable{{send, recv}, {recv, send}, {recv, send, suspend.CaseOf(c.RecvOp()), suspend.CaseOf(c.SendOp(2))}} {
				if won, err := suspend.TrySelect(bg, cases...); won != nil || err != nil {
					t.Fatalf("TrySelect = %v, %v", won, err)
				}
				timeout := suspend.CaseOf(suspend.After(time.Microsecond))
				won, err := suspend.Select(bg, append(cases, timeout)...)
				if won != suspend.Selectable(timeout) || err != nil {
					t.Fatalf("Select = %v, %v", won, err)
				}
			}
		})
		both := func(v int, sent, got *int) func() {
			return func() {
				send, recv := suspend.CaseOf(c.SendOp(v)), suspend.CaseOf(c.RecvOp())
				for range 100 {
					switch won, err := suspend.Select(bg, send, recv); won {
					case send:
						*sent++
					case recv:
						*got += recv.Value()
					default:
						t.Error(err)
					}
				}
			}
		}
		var sent, got [2]int
		schedtest.Run(t, s, both(1000, &sent[0], &got[0]), both(1, &sent[1], &got[1]))
		if got[0] != sent[1] || got[1] != 1000*sent[0] || sent[0]+sent[1] != 100 {
			t.Errorf("sent %v, got %v", sent, got)
		}
		if ok, _ := c.TrySend(0); ok {
			t.Error("a waiter is left in it")
		}
	})
}

func TestThen(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		on := s.(suspend.Executor)
		type result struct {
			v   int
			err error
		}
		results := make(chan result, 2)
		k := func(v int, err error) { results <- result{v, err} }
		sent := func(op suspend.Op[struct{}]) suspend.Op[int] {
			return suspend.Map(op, func(_ struct{}, err error) (int, error) { return -1, err })
		}
		var c, d chanx.Chan[int]
		suspend.Then(bg, c.RecvOp(), on, k)
		suspend.Then(bg, sent(c.SendOp(5)), on, k)
		if a, b := <-results, <-results; a.v+b.v != 4 || a.err != nil || b.err != nil {
			t.Errorf("%+v, %+v", a, b)
		}
		suspend.Then(bg, suspend.Choose(c.RecvOp(), d.RecvOp(), sent(d.SendOp(1))), on, k)
		suspend.Then(bg, sent(c.SendOp(6)), on, k)
		if a, b := <-results, <-results; a.v+b.v != 5 {
			t.Errorf("%+v, %+v", a, b)
		}
		ctx, cancel := context.WithCancel(bg)
		suspend.Then(ctx, c.RecvOp(), on, k)
		suspend.Then(ctx, sent(d.SendOp(7)), on, k)
		cancel()
		if a, b := <-results, <-results; !errors.Is(a.err, context.Canceled) || !errors.Is(b.err, context.Canceled) {
			t.Errorf("%+v, %+v", a, b)
		}
		if ok, _ := c.TrySend(8); ok {
			t.Error("a cancelled receive has received")
		}
		suspend.Then(bg, c.RecvOp(), on, k)
		suspend.Then(bg, sent(d.SendOp(7)), on, k)
		_, _ = c.Close(), d.Close()
		if a, b := <-results, <-results; a.err != chanx.ErrClosed || b.err != chanx.ErrClosed {
			t.Errorf("%+v, %+v", a, b)
		}
	})
}

// A value that was received or not sent is freed, and so is a cancelled waiter.
func TestNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		type big = schedtest.Object
		var values schedtest.Objects
		left := chanx.New[*big](2)
		for range 3 {
			_ = left.Send(bg, values.New())
			_, _ = left.Recv(bg)
		}
		c := chanx.New[*big](2)
		_, _ = c.Send(bg, new(big)), c.Send(bg, new(big))
		ctx, cancel := context.WithCancel(bg)
		failed, over := 0, false
		defer func() { over = true }()
		for _, send := range []func(v *big) error{
			func(v *big) error { return c.Send(ctx, v) },
			func(v *big) error { _, err := suspend.Do(ctx, c.SendOp(v)); return err },
			func(v *big) error {
				var d chanx.Chan[*big]
				_, err := suspend.Select(ctx, suspend.CaseOf(c.SendOp(v)), suspend.CaseOf(d.RecvOp()))
				return err
			},
		} {
			_ = s.Go(func() {
				if send(values.New()) != nil {
					failed++
				}
				for !over { // keeps the task alive
					suspend.Yield()
				}
			})
		}
		schedtest.Settle()
		cancel()
		for failed < 3 {
			suspend.Yield()
		}
		values.Collected(t, 0)
		runtime.KeepAlive(left)
		runtime.KeepAlive(c)
	})
}

func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	for _, ctx := range []context.Context{bg, ctx} {
		c := chanx.New[int](1)
		if got := testing.AllocsPerRun(100, func() { _ = c.Send(ctx, 1); _, _ = c.Recv(ctx) }); got > 0 {
			t.Errorf("buffered: %v allocations", got)
		}
		if got := testing.AllocsPerRun(100, func() { _, _ = c.TrySend(1); _, _, _ = c.TryRecv() }); got > 0 {
			t.Errorf("TrySend, TryRecv: %v allocations", got)
		}
		for _, capacity := range []int{0, 1} {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				there, back := chanx.New[int](capacity), chanx.New[int](capacity)
				_ = s.Go(func() {
					for {
						v, err := there.Recv(ctx)
						if err != nil {
							return
						}
						_ = back.Send(ctx, v)
					}
				})
				got := testing.AllocsPerRun(100, func() { _ = there.Send(ctx, 1); _, _ = back.Recv(ctx) })
				if got > 0 && !schedtest.Race {
					t.Errorf("there and back, capacity %d: %v allocations", capacity, got)
				}
				_ = there.Close()
			})
		}
	}
}
