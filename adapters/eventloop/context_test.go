package eventloop_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A quick conn has data at once, but its context ends during the Read.
type quick struct {
	net.Conn
	cancel context.CancelFunc
	late   chan time.Time
}

func (q *quick) Read(p []byte) (int, error) {
	q.cancel()
	return len(p), nil
}

func (q *quick) SetReadDeadline(at time.Time) error { q.late <- at; return nil }

// A context ends at the same time as the operation on a foreign conn, too late to end it. It must not set the deadline of later
// operations, which may have another context.
func TestWithContextLeavesNoDeadlineBehind(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		q := &quick{cancel: cancel, late: make(chan time.Time, 1)}
		if n, err := eventloop.WithContext(ctx, q).Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		before := len(q.late)
		schedtest.Quiet(t)
		if len(q.late) > before {
			t.Fatal("a deadline is set after the operation")
		}
	}
}

// A slow conn takes its time to set a deadline.
type slow struct {
	net.Conn
	read                func()
	setting, goOn, over chan struct{}
}

func (s *slow) Read(p []byte) (int, error) { s.read(); return len(p), nil }

func (s *slow) SetReadDeadline(time.Time) error {
	close(s.setting)
	<-s.goOn
	close(s.over)
	return nil
}

// While its context sets the deadline, an operation on a foreign conn does not return, because this deadline would end the next
// operation.
func TestWithContextWaitsForTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		s := &slow{setting: make(chan struct{}), goOn: make(chan struct{}), over: make(chan struct{})}
		s.read = func() { cancel(); <-s.setting }
		go func() {
			synctest.Wait()
			close(s.goOn)
		}()
		_, _ = eventloop.WithContext(ctx, s).Read(make([]byte, 1))
		select {
		case <-s.over:
		default:
			t.Error("Read has returned before the deadline was set")
		}
	})
}

// leaving is a context that calls a function of the test when an operation withdraws its registration.
type leaving struct {
	context.Context
	done chan struct{}
	f    func()
}

func (l *leaving) Done() <-chan struct{}               { return l.done }
func (l *leaving) AfterFunc(func()) (stop func() bool) { return func() bool { l.f(); return true } }

// A context that ends after the operation on a foreign conn sets no deadline.
func TestWithContextSetsNoDeadlineAfterTheOperation(t *testing.T) {
	second, cancel := context.WithCancel(context.Background())
	q := &quick{cancel: func() {}, late: make(chan time.Time, 1)}
	c := eventloop.WithContext(&leaving{context.Background(), make(chan struct{}), cancel}, eventloop.WithContext(second, q))
	_, _ = c.Read(make([]byte, 1))
	if second.Err() == nil {
		t.Fatal("the second context has not ended between the operation and its own withdrawal")
	}
	schedtest.Quiet(t)
	if len(q.late) > 0 {
		t.Error("a deadline is set")
	}
}
