package ignored

import (
	"context"

	"github.com/braidgo/braid/actor/natsactor"
	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
)

var (
	bg    = context.Background()
	other = context.Background()
)

func swap() { other = context.TODO() }

type server struct {
	mu  mutex.RWMutex
	sem *semaphore.Semaphore
	in  *chanx.Chan[int]
}

func (s *server) wrong(ctx context.Context, k *keyed.Mutex[string], l *latch.Latch) {
	_ = s.mu.LockContext(ctx) // want `the error of mutex.RWMutex.LockContext is ignored: if ctx has ended, another task may hold the lock`
	defer s.mu.Unlock()
	s.sem.Acquire(ctx, 1)       // want `the error of semaphore.Semaphore.Acquire is ignored: if ctx has ended, other tasks may hold the permits`
	go s.in.Send(ctx, 1)        // want `chanx.Chan.Send is ignored: if ctx has ended, the value may not have been sent`
	defer l.Wait(ctx)           // want `latch.Latch.Wait is ignored`
	_ = k.LockContext(ctx, "a") // want `keyed.Mutex.LockContext is ignored`
	func() { k.Unlock("a") }()
	if l == nil {
		ctx = context.Background()
	}
	_ = s.mu.RLockContext(other) // want `RLockContext is ignored`
	s.mu.RUnlock()
	for n := range s.in.All(ctx) { // want `the errors of chanx.Chan.All are ignored: if it fails, the loop runs once more, with a zero value`
		print(n)
	}
	for range scope.Stream(ctx, nil, 1, (s.in.All(ctx)), func(context.Context, int) (int, error) { return 1, nil }) { // want `scope.Stream are ignored`
	}
	// A call, a task and a slow subscriber fail whatever the context is.
	var st *stage.Stage[int, int]
	for n := range scope.Stream(bg, nil, 1, scope.Lift(func(func(int) bool) {}), func(context.Context, int) (int, error) { return 1, nil }) { // want `are ignored`
		print(n)
	}
	for range stage.Each(bg, st, scope.Lift(func(func(int) bool) {}), stage.EachOptions{}) { // want `are ignored`
	}
	for range (new(broadcast.Subscription[int])).All(bg) { // want `are ignored`
	}
	for range (new(broadcast.Subscription[int])).All(other) { // want `broadcast.Subscription.All are ignored`
	}
}

func (s *server) right(ctx context.Context, l *latch.Latch) error {
	if err := s.mu.LockContext(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	forever := context.WithoutCancel(ctx)
	_ = s.sem.Acquire(forever, 1) // cannot end
	s.sem.Release(1)
	_ = s.mu.RLockContext(context.WithValue(bg, server{}, 1))
	s.mu.RUnlock()
	for n, err := range s.in.All(ctx) {
		print(n, err)
	}
	for n := range s.in.All(bg) { // has no error after a Close; one after a CloseWith is not looked for
		print(n)
	}
	for due := range rate.NewTicker(1, rate.Skip).All(ctx) { // has no errors
		print(due.String())
	}
	_ = s.in.Send(ctx, 1)     // meant so
	_ = s.mu.LockContext(ctx) // held by whoever holds it
	return l.Wait(ctx)
}

func ends(ctx context.Context, s *stage.Stage[int, int], f stage.Flow[int, int], p *stage.Pool, n *natsactor.Server) error {
	defer s.Close() // want `the error of stage.Stage.Close is ignored: it says how much was lost; to lose nothing, use Shutdown`
	f.Close()       // want `the error of stage.Closer.Close is ignored`
	_ = s.Close()   // meant so
	defer n.Close() // want `the error of natsactor.Server.Close is ignored`
	_ = n.Close()
	defer p.Close() // it waits for all functions
	_ = f.Shutdown(ctx)
	return s.Close()
}
