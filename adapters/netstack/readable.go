package netstack

import (
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/suspend"
)

// ReadableOp returns an operation that waits until a Read would return without waiting. That happens when bytes are
// available, the peer has closed, a deadline has passed, or c is closed. The operation reads nothing. In all these
// cases its error is nil, because the Read that follows returns the reason. With the operation, one Select can wait
// for a connection, a message and a timeout. If another reader takes the bytes first, the Read still waits. Any number
// of tasks may wait for the same connection.
func (c *Conn) ReadableOp() suspend.Op[struct{}] {
	return suspend.OpOf[struct{}](&readable{side: &c.rd, look: func() bool { return c.ep.Readiness(waiter.ReadableEvents) != 0 }})
}

// A readable queries the stack before each Try, because the stack must not be called while a guard is held. A readable
// is an again.Maker; its method Anew returns another readable, which is an again.Preparer.
type readable struct {
	*side
	look  func() bool
	ready bool
	seen  uint64 // the value of count before Prepare set the field ready
}

func (r *readable) Anew() suspend.Source[struct{}]      { return &readable{side: r.side, look: r.look} }
func (r *readable) Guard() *suspend.Guard               { return &r.guard }
func (r *readable) Enqueue(s suspend.Resumer[struct{}]) { r.looking.Push(s, struct{}{}) }
func (r *readable) Remove(s suspend.Resumer[struct{}])  { r.looking.Remove(s) }
func (r *readable) Settle()                             {}
func (r *readable) Drop()                               {}

func (r *readable) Prepare() {
	r.guard.Lock()
	r.seen = r.count
	r.guard.Unlock()
	r.ready = r.look()
}

func (r *readable) Try() (none struct{}, ok bool, err error) {
	switch {
	case r.ready || r.late || r.closed:
		return none, true, nil
	case r.count != r.seen:
		return none, true, again.Err
	}
	return none, false, nil
}
