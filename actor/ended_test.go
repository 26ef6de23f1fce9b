package actor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
)

type eyesGet struct{ actor.Request[int] }

func TestAskOfEndedIsNotSelf(t *testing.T) {
	bad := 0
	err := fifo.Run(context.Background(), func(ctx0 context.Context) error {
		for range 10 {
			a := actor.Spawn(context.Background(), suspend.Here(), func(ctx context.Context, self *actor.Self[*eyesGet]) error { return nil })
			_ = a.Wait(context.Background())
			w := actor.Spawn(context.Background(), suspend.Here(), func(ctx context.Context, self *actor.Self[*eyesGet]) error {
				_, err := actor.Ask(ctx, a, &eyesGet{})
				if !errors.Is(err, actor.ErrEnded) {
					bad++
					t.Log(err)
				}
				return nil
			})
			_ = w.Wait(context.Background())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if bad > 0 {
		t.Errorf("%d of 10", bad)
	}
	_ = time.Second
}

// A Stop while the children of a failed life end: the failure is lost.
func TestStopWhileChildrenEnd(t *testing.T) {
	hold, in := make(chan struct{}), make(chan struct{})
	lives := 0
	boom := errors.New("boom")
	p := actor.Spawn(context.Background(), suspend.Goroutines, actor.Restart(actor.Policy{}, func(ctx context.Context, self *actor.Self[int]) error {
		if lives++; lives > 1 {
			_, err := self.Receive(ctx)
			return err
		}
		actor.Spawn(ctx, suspend.Goroutines, func(ctx context.Context, self *actor.Self[int]) error {
			close(in)
			<-hold
			return nil
		})
		<-in
		return boom
	}))
	<-in
	time.Sleep(50 * time.Millisecond)
	p.Stop()
	close(hold)
	if err := p.Wait(context.Background()); !errors.Is(err, boom) || lives != 1 {
		t.Errorf("%v after %d lives", err, lives)
	}
}
