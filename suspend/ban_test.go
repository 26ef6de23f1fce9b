package suspend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Under a Ban, suspending panics with the text of the Ban. Bans do not nest.
func TestBan(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			x, y := suspend.NewBan("x: not here"), suspend.NewBan("y: not here")
			block := func(suspend.Resumer[int]) (int, bool) { return 1, true }
			under := func(b *suspend.Ban, f func()) {
				e, ok := b.Enter()
				require.True(t, ok)
				defer b.Exit(e)
				f()
			}
			under(x, func() {
				schedtest.Panics(t, "x: not here", func() { _, _ = suspend.Suspend(bg, block) })
				require.Nil(t, suspend.Current())
				_, ok := x.Enter()
				require.False(t, ok, "it nests")
				under(y, func() {
					schedtest.Panics(t, "y: not here", func() { _, _ = suspend.Suspend(bg, block) })
				})
				schedtest.Panics(t, "x: not here", func() { _, _ = suspend.Suspend(bg, block) })
				suspend.Bind(sched.NewThread(), func() { under(x, func() {}) })
			})
			schedtest.Panics(t, "ouch", func() { under(x, func() { panic("ouch") }) })
			v, err := suspend.Suspend(bg, block)
			require.NoError(t, err)
			require.Equal(t, 1, v)
		})
	})
}
