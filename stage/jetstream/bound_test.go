package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
	queue "github.com/braidgo/braid/stage/jetstream"
)

// run returns a stage on f, which is closed at the end of the test.
func run(t *testing.T, f func(ctx context.Context, n int) error, o stage.Options) *stage.Stage[int, int] {
	s := stage.New("s", func(ctx context.Context, n int) (int, error) { return n, f(ctx, n) }, o)
	t.Cleanup(func() { _ = s.Shutdown(bg) })
	return s
}

// A message whose process dies each time is a dead letter after Tries deliveries, and is not begun again.
func TestProcessesThatDie(t *testing.T) {
	const tries = 3
	js, q := open(t, queue.Options{Tries: tries, AckWait: 200 * time.Millisecond, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	submit(t, q, 1)
	c := must(js.Consumer(bg, "work", "work"))
	for range tries { // each time, a process gets the message and is killed
		b := must(c.Fetch(1, jetstream.FetchMaxWait(10*time.Second)))
		n := 0
		for range b.Messages() {
			n++
		}
		require.Equal(t, 1, n)
	}
	var runs atomic.Int32
	stop, _ := serving(q, run(t, func(context.Context, int) error { runs.Add(1); return nil }, stage.Options{}), 2)
	eventually(t, "buried", func() bool { return waiting(q) == 0 })
	_ = stop()
	require.Zero(t, runs.Load())
	m := must(must(js.Stream(bg, "work-dead")).GetMsg(bg, 1))
	require.Equal(t, "1", string(m.Data))
	require.Contains(t, m.Header.Get("Reason"), "a process has died")
}

// A message becomes a dead letter, and is not tried again, however long the reason and the message are.
func TestDeadLettersFit(t *testing.T) {
	for _, dead := range []string{"graveyard", ""} {
		t.Run("to "+dead, func(t *testing.T) {
			s := serve(t, t.TempDir(), -1)
			t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
			c, js := connect(s.ClientURL())
			t.Cleanup(c.Close)
			q := must(queue.Open[string](bg, js, "work", queue.Options{Tries: 1, Dead: dead, Storage: jetstream.MemoryStorage}))
			most := int(c.MaxPayload())
			reasons := []int{10, 70 << 10, 2 << 20} // headers can have 64 KiB
			sizes := []int{10, most - 100}
			n := 0
			for range len(reasons) * len(sizes) {
				require.NoError(t, q.Submit(bg, fmt.Sprint(n, strings.Repeat("y", sizes[n%2]-5)), ""))
				n++
			}
			var runs atomic.Int32
			st := stage.New("s", func(_ context.Context, v string) (int, error) {
				runs.Add(1)
				return 0, errors.New(strings.Repeat("x", reasons[(v[0]-'0')/2]))
			}, stage.Options{})
			ctx, stop := context.WithCancel(bg)
			ended := make(chan error)
			go func() { ended <- queue.Serve(ctx, q, st, 1) }()
			eventually(t, "all dead", func() bool { return must(q.Waiting(bg)) == 0 })
			stop()
			<-ended
			require.EqualValues(t, n, runs.Load())
			require.Equal(t, queue.Stats{Pulled: uint64(n), Dead: uint64(n)}, q.Stats())
			if dead == "" {
				return
			}
			for i := range n {
				m := must(must(js.Stream(bg, "work-dead")).GetMsg(bg, uint64(i+1)))
				require.NotEmpty(t, m.Header.Get("Reason"))
				if whole := len(m.Data) > 0; !whole {
					require.Equal(t, fmt.Sprint(sizes[1]-2), m.Header.Get("Size"), i) // a string with a digit and two quotes
				}
			}
			_ = st.Shutdown(bg)
		})
	}
}

// Messages that wait for another try do not count towards InFlight.
func TestDelayedTriesUseNoPlace(t *testing.T) {
	const places = 4
	_, q := open(t, queue.Options{InFlight: places, Tries: 1000, Storage: jetstream.MemoryStorage})
	var bad, good atomic.Int32
	s := run(t, func(_ context.Context, n int) error {
		switch {
		case n >= places:
			good.Add(1)
			return nil
		case n == 0:
			bad.Add(1)
			return queue.Snooze(time.Hour, errOops)
		}
		bad.Add(1)
		return errOops
	}, stage.Options{Width: places})
	stop, _ := serving(q, s, places)
	submit(t, q, 0, 1, 2, 3)
	eventually(t, "one snoozes, and the others wait for 3.2 s", func() bool { return bad.Load() >= 1+3*5 })
	for n := range 50 {
		submit(t, q, 100+n)
	}
	tries := bad.Load()
	eventually(t, "the good ones done", func() bool { return good.Load() == 50 })
	require.Less(t, bad.Load(), tries+3*2, "the good messages have waited for the bad ones")
	_ = stop()
	require.Equal(t, places, waiting(q))
}

// InFlight limits the messages in progress.
func TestInFlight(t *testing.T) {
	_, q := open(t, queue.Options{InFlight: 3, Storage: jetstream.MemoryStorage})
	let := make(chan struct{})
	s := run(t, func(context.Context, int) error { <-let; return nil }, stage.Options{Width: 8})
	submit(t, q, 1, 2, 3, 4, 5, 6, 7, 8)
	stop, _ := serving(q, s, 8)
	eventually(t, "three in progress", func() bool { return s.Stats().Busy == 3 })
	require.Never(t, func() bool { return s.Stats().Busy > 3 }, 200*time.Millisecond, 10*time.Millisecond)
	close(let)
	eventually(t, "all done", func() bool { return waiting(q) == 0 })
	_ = stop()
}

// A message that arrives after the end of the context is not begun, and is returned to the queue.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	_, q := open(t, queue.Options{Tries: 1, Storage: jetstream.MemoryStorage})
	var begun atomic.Int32
	s := run(t, func(context.Context, int) error { begun.Add(1); return nil }, stage.Options{Width: 2})
	for begun.Load() == 0 || q.Stats().Returned == 0 { // the message may arrive when no pull waits any more
		ctx, cancel := context.WithCancel(bg)
		ended := make(chan error, 1)
		go func() { ended <- queue.Serve(ctx, q, s, 2) }()
		submit(t, q, 1)
		eventually(t, "done", func() bool { return waiting(q) == 0 })
		before := begun.Load()
		cancel()
		submit(t, q, 2) // the pull waits for a second
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, before, begun.Load())
	}
	stop, _ := serving(q, s, 2) // the next Serve handles it, although only one try is allowed
	eventually(t, "done later", func() bool { return waiting(q) == 0 })
	_ = stop()
	require.Zero(t, q.Stats().Dead)
}

// A full stage, and a handler that is not ready yet, use no try.
func TestWhatIsNoTry(t *testing.T) {
	js, q := open(t, queue.Options{Tries: 2, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	submit(t, q, 1)
	for range 3 {
		full := run(t, func(context.Context, int) error { return stage.ErrFull }, stage.Options{})
		waits := q.Stats().Waits
		stop, _ := serving(q, full, 1)
		eventually(t, "waits for room", func() bool { return q.Stats().Waits > waits })
		_ = stop()
	}
	var runs atomic.Int32
	s := run(t, func(context.Context, int) error {
		switch runs.Add(1) {
		case 1, 2, 3:
			return queue.Snooze(10*time.Millisecond, errOops)
		case 4:
			return errOops
		}
		return nil
	}, stage.Options{})
	stop, _ := serving(q, s, 1)
	eventually(t, "done", func() bool { return waiting(q) == 0 })
	_ = stop()
	stats := q.Stats()
	require.EqualValues(t, 5, runs.Load())
	require.Zero(t, buried(js))
	require.Equal(t, queue.Stats{Pulled: stats.Pulled, Done: 1, Failed: 1, Returned: 3, Snoozed: 3, Waits: stats.Waits}, stats)
}

// The process that handles a message survives an outage that is longer than AckWait. The message is not begun again, and
// its try counts once.
func TestOutageInProgress(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, -1)
	port := s.Addr().String()
	port = port[strings.LastIndexByte(port, ':')+1:]
	c, js := connect(s.ClientURL())
	defer c.Close()
	const ackWait = time.Second
	q := must(queue.Open[int](bg, js, "work", queue.Options{Tries: 1, AckWait: ackWait, Dead: "graveyard"}))
	var runs atomic.Int32
	let := make(chan struct{})
	st := run(t, func(context.Context, int) error { runs.Add(1); <-let; return nil }, stage.Options{Width: 2})
	submit(t, q, 1)
	stop, _ := serving(q, st, 2)
	eventually(t, "begun", func() bool { return runs.Load() == 1 })
	s.Shutdown()
	s.WaitForShutdown()
	time.Sleep(2 * ackWait)
	var n int
	fmt.Sscan(port, &n)
	s = serve(t, dir, n)
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	eventually(t, "pulls again", func() bool { return c.IsConnected() })
	time.Sleep(2 * ackWait) // the message is delivered again
	close(let)
	eventually(t, "done", func() bool { return q.Stats().Done == 1 })
	_ = stop()
	require.EqualValues(t, 1, runs.Load())
	require.Zero(t, waiting(q))
	require.Zero(t, buried(js))
}

// Only a full queue is ErrFull. Other limits of a stream have the same code as a full queue.
func TestOtherLimits(t *testing.T) {
	js, q := open(t, queue.Options{Storage: jetstream.MemoryStorage})
	config := must(js.Stream(bg, "work")).CachedInfo().Config
	config.MaxBytes = 1
	must(js.UpdateStream(bg, config))
	err := q.Submit(bg, 1, "")
	require.Error(t, err)
	require.NotErrorIs(t, err, stage.ErrFull)
}

// A message that waits for its next try takes no room from new messages, and has room itself while the queue is full.
func TestRoomForTheNextTry(t *testing.T) {
	_, q := open(t, queue.Options{Queue: 1, Storage: jetstream.MemoryStorage})
	var runs atomic.Int32
	let := make(chan struct{})
	s := run(t, func(_ context.Context, n int) error {
		if n == 2 { // fills the queue until the other message is done
			<-let
			return nil
		}
		if runs.Add(1) < 3 {
			return errOops
		}
		close(let)
		return nil
	}, stage.Options{Width: 2})
	submit(t, q, 1)
	stop, _ := serving(q, s, 2)
	eventually(t, "fails once", func() bool { return q.Stats().Failed == 1 && q.Submit(bg, 2, "") == nil })
	require.ErrorIs(t, q.Submit(bg, 3, ""), stage.ErrFull)
	eventually(t, "done", func() bool { return waiting(q) == 0 })
	_ = stop()
	require.EqualValues(t, 3, runs.Load())
}
