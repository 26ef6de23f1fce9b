package suspend_test

import (
	"runtime"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/stretchr/testify/require"
)

// mortal is a Switcher that a test can kill. It runs on a goroutine.
type mortal struct {
	suspend.Task
	suspend.Bound
	parks func()
}

func (m *mortal) Park()   { m.Task.Park() }
func (m *mortal) Unpark() { m.Task.Unpark() }
func (m *mortal) Leave() (next func() (struct{}, bool), yield func(struct{}) bool) {
	m.parks()
	m.Task.Park()
	return nil, nil
}
func (m *mortal) LeaveReady() (next func() (struct{}, bool), yield func(struct{}) bool) {
	return nil, nil
}
func (m *mortal) Back() (next func() (struct{}, bool), yield func(struct{}) bool) { return nil, nil }

// onMortal runs f in a task that is killed each time it parks. Then it calls parks. It reports whether f has returned.
func onMortal(t *testing.T, parks func(m *mortal), f func(m *mortal)) (returned bool) {
	t.Helper()
	defer schedtest.Within(t, schedtest.Deadline)()
	ended := make(chan bool, 1)
	go func() {
		m := &mortal{Task: sched.NewThread()}
		m.parks = func() { m.Kill(); parks(m) }
		bound, entered := suspend.Enter(m)
		m.Bound = bound
		returned := false
		defer func() { ended <- returned }()
		defer entered.Exit()
		f(m)
		returned = true
	}()
	return <-ended
}

// A Kill takes effect only outside a Shield: when the Shield returns, at the first wait after a panic of the Shield, and at once
// if the Shield is lifted.
func TestShield(t *testing.T) {
	var p *promise.Promise[int]
	reset := func() { p = promise.New[int]() }
	fill := func(m *mortal) {
		require.True(t, m.Shielded())
		require.False(t, m.Kill(), "killed twice")
		_ = p.Fill(1)
	}
	await := func() {
		v, err := p.Await(bg)
		require.NoError(t, err)
		require.Equal(t, 1, v)
	}
	reached := ""
	for name, c := range map[string]struct {
		parks   func(m *mortal)
		f       func(m *mortal)
		reached string
	}{
		"it returns": {fill, func(*mortal) { suspend.Shield(func() { await(); reached = "inside" }); reached = "behind" }, "inside"},
		"in a Shield": {fill, func(*mortal) {
			suspend.Shield(func() { suspend.Shield(await); suspend.Yield(); reached = "inside" })
			reached = "behind"
		}, "inside"},
		"it exits": {fill, func(*mortal) {
			suspend.Shield(func() { await(); reached = "inside"; runtime.Goexit() })
			reached = "behind"
		}, "inside"},
		"it panics": {fill, func(m *mortal) {
			func() {
				defer func() { require.Equal(t, "oops", recover()) }()
				suspend.Shield(func() { await(); panic("oops") })
			}()
			require.False(t, m.Shielded())
			reached = "behind"
			_, _ = promise.New[int]().Await(bg)
			reached = "a wait behind"
		}, "behind"},
		"it is lifted": {func(m *mortal) { require.True(t, m.Unshield()); require.False(t, m.Unshield()) }, func(*mortal) { suspend.Shield(await); reached = "behind" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reset()
			reached = ""
			require.False(t, onMortal(t, c.parks, c.f), "the task has continued")
			require.Equal(t, c.reached, reached)
		})
	}
	ran := 0
	suspend.Shield(func() { ran++ })
	suspend.Bind(nil, func() { suspend.Shield(func() { ran++ }) })
	require.Equal(t, 2, ran, "where there is no task")
}
