package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A fake stands for the stack's end of one direction: bytes, and the end of the stream.
type fake struct {
	side
	lock  suspend.Guard // held like the endpoint's lock, so that other tasks may run before an attempt
	bytes int
	end   bool
}

func (f *fake) read(ctx context.Context) error {
	return f.do(ctx, func() tcpip.Error {
		f.lock.Lock()
		defer f.lock.Unlock()
		switch {
		case f.bytes > 0:
			f.bytes--
			return nil
		case f.end:
			return &tcpip.ErrClosedForReceive{}
		}
		return &tcpip.ErrWouldBlock{}
	})
}

func (f *fake) arrive(n int) {
	f.lock.Lock()
	f.bytes += n
	f.lock.Unlock()
	f.NotifyEvent(0)
}

func (f *fake) finish() {
	f.lock.Lock()
	f.end = true
	f.lock.Unlock()
}

// Two Reads run against events, and one of them may be cancelled. No byte is lost, and the other Read returns one.
func TestExploreEvents(t *testing.T) {
	suspendtest.Explore(t, func(w *suspendtest.World) {
		f, read := new(fake), 0
		w.Go("reader", func(context.Context) {
			if err := f.read(background); err != nil {
				panic(err)
			}
			read++
		})
		w.Go("other", func(ctx context.Context) {
			if f.read(ctx) == nil {
				read++
			}
		})
		w.Go("stack", func(context.Context) { f.arrive(1); f.arrive(1) })
		w.Check(func() error {
			if read+f.bytes != 2 {
				return fmt.Errorf("%d read, %d left, of 2", read, f.bytes)
			}
			return nil
		})
	}, suspendtest.ExploreOptions{})
}

// An event, a deadline and a Close run against a Read and a ReadableOp. Each wait ends, and returns different errors for a Close
// and for the end of the stream.
func TestExploreEnds(t *testing.T) {
	for name, p := range map[string]struct {
		end  func(f *fake)
		want error
	}{
		"deadline": {func(f *fake) { _ = f.setDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"close": {func(f *fake) {
			f.close()
			f.finish() // like the stack after the endpoint was notified
		}, net.ErrClosed},
		"peer": {func(f *fake) { f.finish(); f.NotifyEvent(0) }, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			suspendtest.Explore(t, func(w *suspendtest.World) {
				f := new(fake)
				w.Go("reader", func(ctx context.Context) {
					if err := f.read(ctx); err != nil && !errors.Is(err, p.want) && !errors.Is(err, context.Canceled) {
						panic(err)
					}
				})
				w.Go("stack", func(context.Context) { f.arrive(1) })
				w.Go("end", func(context.Context) { p.end(f) })
				w.Go("later", func(context.Context) {
					for f.read(background) == nil {
					}
				})
			}, suspendtest.ExploreOptions{Executions: 10_000})
		})
	}
}

// A ReadableOp is ready as soon as there is data, and not before.
func TestExploreReadable(t *testing.T) {
	suspendtest.Explore(t, func(w *suspendtest.World) {
		f := new(fake)
		w.Go("looker", func(ctx context.Context) {
			op := suspend.OpOf[struct{}](&readable{side: &f.side, look: func() bool { return f.bytes > 0 }})
			if _, err := suspend.Do(ctx, op); err == nil && f.bytes == 0 {
				panic("there is nothing")
			}
		})
		w.Go("stack", func(context.Context) { f.NotifyEvent(0); f.arrive(1) })
	}, suspendtest.ExploreOptions{})
}
