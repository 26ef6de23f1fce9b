package next

import (
	"context"

	"github.com/braidgo/braid/actor"
)

func wrong(ctx context.Context, self *actor.Self[int]) error {
	self.React(func(int) error { // want `the result of actor.Self.React is not returned, so it has no effect`
		_ = actor.Loop(func() error { return nil }) // want `the result of actor.Loop is not returned`
		return nil
	})
	return nil
}

func right(ctx context.Context, self *actor.Self[int]) error {
	next := self.React(func(int) error { return actor.Skip })
	if ctx.Err() != nil {
		return nil
	}
	return next
}
