package actor_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/braidgo/braid/suspend"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A parser fails and is restarted. Another actor is notified of its end. Its second failure exceeds the limit.
func Example_supervision() {
	type Line struct {
		text string
		actor.Request[int]
	}
	errSyntax := errors.New("syntax error")

	parser := func(_ context.Context, self *actor.Self[*Line]) error {
		lines := 0 // belongs to this life: after a restart it is 0
		return actor.Loop(func() error {
			return self.React(func(l *Line) error {
				if l.text == "" {
					return errSyntax
				}
				lines++
				l.Reply(lines)
				return nil
			})
		})
	}
	patient := actor.Restart(actor.Policy{
		Max:       1,
		Within:    time.Minute,
		OnRestart: func(err error) { fmt.Println("restarted after:", err) },
	}, parser)

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		ref := actor.Spawn(ctx, suspend.Here(), patient, actor.Options[*Line]{})
		boss := actor.Spawn(ctx, suspend.Here(), func(_ context.Context, self *actor.Self[any]) error {
			self.Watch(ref, func(err error) any { return err })
			return self.React(func(err any) error {
				fmt.Println("the parser has ended:", err)
				return nil
			})
		}, actor.Options[any]{})
		for _, text := range []string{"a", "b", "", "c", ""} {
			fmt.Println(actor.Ask(ctx, ref, &Line{text: text}))
		}
		return boss.Wait(ctx)
	})
	// Output:
	// 1 <nil>
	// 2 <nil>
	// restarted after: syntax error
	// 0 actor: no reply: syntax error
	// 1 <nil>
	// 0 actor: no reply: syntax error
	// the parser has ended: syntax error
}
