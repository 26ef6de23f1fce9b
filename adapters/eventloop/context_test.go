package eventloop_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A quick conn has data at once, but its context ends meanwhile.
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

// A context that ends as the operation on a foreign conn does, too late to end it, does not set the deadline of those
// that come later, perhaps with another context.
func TestWithContextLeavesNoDeadlineBehind(t *testing.T) {
	for range 1000 {
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
