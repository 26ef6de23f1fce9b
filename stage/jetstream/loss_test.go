package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
	queue "github.com/braidgo/braid/stage/jetstream"
)

// serving runs Serve, and returns a function that stops it and returns its error.
func serving(q *queue.Queue[int], f stage.Flow[int, int], width int) (stop func() error, ended <-chan error) {
	ctx, cancel := context.WithCancel(bg)
	c := make(chan error, 1)
	go func() { c <- queue.Serve(ctx, q, f, width) }()
	return func() error { cancel(); return <-c }, c
}

func submit(t *testing.T, q *queue.Queue[int], ns ...int) {
	t.Helper()
	for _, n := range ns {
		if err := q.Submit(bg, n, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func buried(js jetstream.JetStream) int {
	return int(must(must(js.Stream(bg, "work-dead")).Info(bg)).State.Msgs)
}

// If a stage sheds and rejects tasks, no message is lost: they wait, and their tries are not counted.
func TestOverloadIsNoFailure(t *testing.T) {
	const all = 200
	js, q := open(t, queue.Options{Tries: 1, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	var mu sync.Mutex
	done := map[int]int{}
	s := stage.New("s", func(_ context.Context, n int) (int, error) {
		time.Sleep(3 * time.Millisecond)
		mu.Lock()
		done[n]++
		mu.Unlock()
		return n, nil
	}, stage.Options{Width: 1, Queue: 20, Reject: true, Delay: 2 * time.Millisecond})
	for n := range all {
		submit(t, q, n)
	}
	stop, _ := serving(q, s, 40)
	eventually(t, "all done", func() bool { return waiting(q) == 0 })
	_ = stop()
	stats, shed := q.Stats(), s.Stats()
	if len(done) != all || buried(js) != 0 || stats.Done != all || stats.Dead+stats.Failed != 0 {
		t.Errorf("%d done, %d dead, %+v", len(done), buried(js), stats)
	}
	if stats.Waits == 0 || shed.Late == 0 || shed.Rejected == 0 {
		t.Errorf("%d waits, %d late, %d rejected: there was no overload", stats.Waits, shed.Late, shed.Rejected)
	}
	_ = s.Shutdown(bg)
}

// An overload error that the handler returns is not a failure either.
func TestOverloadFurtherOn(t *testing.T) {
	js, q := open(t, queue.Options{Tries: 1, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	var runs atomic.Int32
	s := stage.New("s", func(context.Context, int) (int, error) {
		if runs.Add(1) < 4 {
			return 0, fmt.Errorf("far away: %w", stage.ErrLate)
		}
		return 0, nil
	}, stage.Options{})
	submit(t, q, 1)
	stop, _ := serving(q, s, 2)
	eventually(t, "done", func() bool { return waiting(q) == 0 })
	_ = stop()
	if stats := q.Stats(); runs.Load() != 4 || buried(js) != 0 || stats.Pulled != 1 || stats.Waits != 3 || stats.Done != 1 {
		t.Errorf("%d runs, %d dead, %+v", runs.Load(), buried(js), stats)
	}
	_ = s.Shutdown(bg)
}

// When Serve ends, it returns the messages for which there is no room.
func TestEndWithoutRoom(t *testing.T) {
	_, q := open(t, queue.Options{Storage: jetstream.MemoryStorage})
	s := stage.New("s", func(context.Context, int) (int, error) { return 0, stage.ErrFull }, stage.Options{})
	submit(t, q, 1)
	stop, _ := serving(q, s, 1)
	eventually(t, "waits", func() bool { return q.Stats().Waits > 0 })
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if q.Stats().Returned != 1 || waiting(q) != 1 {
		t.Errorf("%+v", q.Stats())
	}
	_ = s.Shutdown(bg)
}

// An ErrClosed of a stage outside the flow is an error like any other.
func TestClosedElsewhere(t *testing.T) {
	js, q := open(t, queue.Options{Tries: 2, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	other := stage.New("other", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{})
	_ = other.Shutdown(bg)
	s := stage.New("s", func(ctx context.Context, n int) (int, error) {
		if n == 3 {
			return other.Do(ctx, n)
		}
		return n, nil
	}, stage.Options{})
	submit(t, q, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	stop, ended := serving(q, s, 2)
	eventually(t, "all done", func() bool { return waiting(q) == 0 })
	select {
	case err := <-ended:
		t.Fatal(err)
	default:
	}
	_ = stop()
	if stats := q.Stats(); stats.Done != 9 || stats.Dead != 1 || stats.Failed != 1 || buried(js) != 1 {
		t.Errorf("%+v", stats)
	}
	_ = s.Shutdown(bg)
}

// If a stage of the flow is closed, wherever it is, Serve ends, and no message counts as failed.
func TestClosedFurtherOn(t *testing.T) {
	js, q := open(t, queue.Options{Tries: 1, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	a := stage.New("a", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{})
	b := stage.New("b", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{})
	f := stage.Pipe(a, b)
	_ = b.Shutdown(bg)
	submit(t, q, 1)
	if err := queue.Serve(bg, q, f, 2); !errors.Is(err, stage.ErrClosed) || !strings.Contains(err.Error(), "b") {
		t.Error(err)
	}
	if waiting(q) != 1 || buried(js) != 0 || q.Stats().Returned != 1 {
		t.Errorf("%d stored, %d dead, %+v", waiting(q), buried(js), q.Stats())
	}
	_ = stage.Shutdown(bg, a, b)
}

// After an error of Permanent a message is not tried again, even if the error is an overload.
func TestPermanent(t *testing.T) {
	var mu sync.Mutex
	var told []error
	js, q := open(t, queue.Options{Tries: 5, Dead: "graveyard", Storage: jetstream.MemoryStorage, OnError: func(err error) {
		mu.Lock()
		told = append(told, err)
		mu.Unlock()
	}})
	var runs atomic.Int32
	s := stage.New("s", func(_ context.Context, n int) (int, error) {
		runs.Add(1)
		if n == 1 {
			return 0, fmt.Errorf("bad event: %w", queue.Permanent(errOops))
		}
		return 0, queue.Permanent(stage.ErrFull)
	}, stage.Options{})
	submit(t, q, 1, 2)
	stop, _ := serving(q, s, 2)
	eventually(t, "buried", func() bool { return waiting(q) == 0 })
	_ = stop()
	if stats := q.Stats(); runs.Load() != 2 || buried(js) != 2 || stats.Dead != 2 || stats.Failed != 0 || stats.Waits != 0 {
		t.Errorf("%d runs, %d dead, %+v", runs.Load(), buried(js), stats)
	}
	if len(told) != 2 || !errors.Is(errors.Join(told...), errOops) || !errors.Is(errors.Join(told...), stage.ErrFull) {
		t.Error(told)
	}
	if queue.Permanent(nil) != nil {
		t.Error("an unexpected error")
	}
	_ = s.Shutdown(bg)
}

// A failed try, and a deleted queue, are reported. When the queue exists again, Serve continues.
func TestOnError(t *testing.T) {
	told := make(chan error, 1000)
	o := queue.Options{Tries: 3, Storage: jetstream.MemoryStorage, OnError: func(err error) { told <- err }}
	js, q := open(t, o)
	var runs atomic.Int32
	s := stage.New("s", func(context.Context, int) (int, error) {
		if runs.Add(1) == 1 {
			return 0, errOops
		}
		return 0, nil
	}, stage.Options{})
	submit(t, q, 1)
	stop, _ := serving(q, s, 2)
	if err := <-told; !errors.Is(err, errOops) {
		t.Error(err)
	}
	eventually(t, "done", func() bool { return waiting(q) == 0 && q.Stats().Done == 1 }) // waits until the server has the ack
	if stats := q.Stats(); stats.Failed != 1 || stats.Done != 1 || stats.Pulled != 2 || stats.Errors != 0 {
		t.Errorf("%+v", stats)
	}
	begun := time.Now()
	if err := js.DeleteStream(bg, "work"); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"queue work: pull:", "queue work: wait for delays:"} {
		deadline := time.After(30 * time.Second)
		for found := false; !found; {
			select {
			case err := <-told:
				if found = strings.Contains(err.Error(), what); found {
					t.Logf("told after %v: %v", time.Since(begun), err)
				}
			case <-deadline:
				t.Fatal("not told: ", what)
			}
		}
	}
	if q.Stats().Errors < 2 {
		t.Errorf("%+v", q.Stats())
	}
	again := must(queue.Open[int](bg, js, "work", o))
	submit(t, again, 2)
	eventually(t, "served again", func() bool { return waiting(again) == 0 && q.Stats().Done == 2 })
	_ = stop()
	_ = s.Shutdown(bg)
}

// A handler that takes longer than AckWait runs once.
func TestInProgress(t *testing.T) {
	const ackWait = 3 * time.Second // a sign of progress is due each second
	_, q := open(t, queue.Options{AckWait: ackWait, Storage: jetstream.MemoryStorage})
	var runs atomic.Int32
	s := stage.New("s", func(context.Context, int) (int, error) {
		runs.Add(1)
		time.Sleep(2 * ackWait)
		return 0, nil
	}, stage.Options{Width: 4})
	submit(t, q, 1, 2)
	stop, _ := serving(q, s, 2)
	another, _ := serving(q, s, 2)
	eventually(t, "done", func() bool { return waiting(q) == 0 })
	_, _ = stop(), another()
	if n := runs.Load(); n != 2 {
		t.Errorf("%d runs of 2 messages", n)
	}
	_ = s.Shutdown(bg)
}

// A dead message was stored, and is delivered again because the process died after that. It is stored once. A message with
// the same number in a new queue is stored, too.
func TestDeadOnce(t *testing.T) {
	o := queue.Options{Tries: 1, Dead: "graveyard", Storage: jetstream.MemoryStorage}
	js, q := open(t, o)
	s := stage.New("s", func(context.Context, int) (int, error) { return 0, errOops }, stage.Options{})
	submit(t, q, 1)
	raw := must(must(js.Stream(bg, "work")).GetMsg(bg, 1))
	id := fmt.Sprintf("work-%d-%d", raw.Sequence, raw.Time.UnixNano())
	must(js.PublishMsg(bg, &nats.Msg{Subject: "graveyard", Data: []byte("1")}, jetstream.WithMsgID(id)))
	stop, _ := serving(q, s, 2)
	eventually(t, "buried", func() bool { return waiting(q) == 0 })
	_ = stop()
	if n := buried(js); n != 1 {
		t.Errorf("%d dead", n)
	}
	if err := js.DeleteStream(bg, "work"); err != nil {
		t.Fatal(err)
	}
	q = must(queue.Open[int](bg, js, "work", o))
	submit(t, q, 2)
	stop, _ = serving(q, s, 2)
	eventually(t, "buried", func() bool { return waiting(q) == 0 })
	_ = stop()
	if n := buried(js); n != 2 {
		t.Errorf("%d dead", n)
	}
	_ = s.Shutdown(bg)
}

// The width limits the messages in progress. All of the width is used while some messages take a long time.
func TestWidth(t *testing.T) {
	const width = 20
	_, q := open(t, queue.Options{Storage: jetstream.MemoryStorage})
	let := make(chan struct{})
	var in, most atomic.Int32
	s := stage.New("s", func(_ context.Context, n int) (int, error) {
		defer in.Add(-1)
		for now := in.Add(1); ; {
			if before := most.Load(); before >= now || most.CompareAndSwap(before, now) {
				break
			}
		}
		if n%2 == 0 {
			<-let
		}
		return n, nil
	}, stage.Options{Width: 100})
	for n := range 100 {
		submit(t, q, n)
	}
	stop, _ := serving(q, s, width)
	eventually(t, "stuck with as many messages as the width", func() bool { return in.Load() == width && q.Stats().Done > 0 })
	close(let)
	eventually(t, "all done", func() bool { return waiting(q) == 0 })
	_ = stop()
	if most.Load() != width || q.Stats().Pulled != 100 {
		t.Errorf("%d at a time, %+v", most.Load(), q.Stats())
	}
	_ = s.Shutdown(bg)
}

// A pull requests a message for each free worker, here 64.
func TestPulls(t *testing.T) {
	const width = 64
	js, q := open(t, queue.Options{Storage: jetstream.MemoryStorage})
	let := make(chan struct{})
	s := stage.New("s", func(context.Context, int) (int, error) { <-let; return 0, nil }, stage.Options{Width: width})
	pulls := must(js.Conn().SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.work.work"))
	for n := range width {
		submit(t, q, n)
	}
	stop, _ := serving(q, s, width)
	eventually(t, "all in hand", func() bool { return s.Stats().Busy == width })
	if n, _, err := pulls.Pending(); n != 1 || err != nil {
		t.Errorf("%d pulls, %v", n, err)
	}
	close(let)
	_ = stop()
	_ = s.Shutdown(bg)
}

// If the connection is closed, Serve ends without waiting for acknowledgements.
func TestConnectionClosed(t *testing.T) {
	js, q := open(t, queue.Options{AckWait: time.Hour, Storage: jetstream.MemoryStorage})
	s := stage.New("s", func(context.Context, int) (int, error) { js.Conn().Close(); return 0, nil }, stage.Options{})
	submit(t, q, 1)
	_, ended := serving(q, s, 2)
	if err := <-ended; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Error(err)
	}
	_ = s.Shutdown(bg)
}
