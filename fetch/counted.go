package fetch

import (
	"context"

	"github.com/braidgo/braid/idle"
	"github.com/braidgo/braid/suspend"
)

// counted runs body as a task of on. Its tasks are a Group, which tells when all of them wait. A task that waits natively
// counts as running, which delays a round and never splits one.
func (r *invocation) counted(on suspend.Spawner) {
	g := idle.New(on, r.d.idle)
	r.d.group = g
	r.d.register(g)
	if err := g.Go(func() { _ = r.task(context.Background()) }); err != nil {
		r.err = err
		return
	}
	_ = g.Wait(context.Background())
}
