package idle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// inNodes calls f in a World with a Group on a node, with a Group in a Group, and with the node itself.
func inNodes(t *testing.T, f func(ctx context.Context, w *simulation.World, decorate func(n *simulation.Node) suspend.Spawner) error) {
	for depth := range 3 {
		t.Run(fmt.Sprint(depth, " groups"), func(t *testing.T) {
			require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
				return f(ctx, w, func(n *simulation.Node) suspend.Spawner {
					var on suspend.Spawner = n
					for range depth {
						on = idle.New(on, nil)
					}
					return on
				})
			}, simulation.Options{Seed: 1}).Err)
		})
	}
}

// A Kill of a task of a Group races with the Resume of its wait, as without a Group. If the lock was handed over, the wait must
// return it: an exit would lose the lock.
func TestKillAndResume(t *testing.T) {
	inNodes(t, func(ctx context.Context, w *simulation.World, decorate func(n *simulation.Node) suspend.Spawner) error {
		nodes := 0
		suspendtest.Kill(t, func() (suspend.Spawner, func()) {
			nodes++
			n := w.Node(fmt.Sprint(nodes))
			return decorate(n), n.Crash
		})
		return nil
	})
}

// The same holds for a wait under a Task that is bound in the body of a Pull, or in a Pull inside that body.
func TestKillInAPull(t *testing.T) {
	for name, within := range map[string]func(f func()){
		"no Bind":   func(f func()) { pulled(f) },
		"a Bind":    func(f func()) { pulled(func() { decorated(f) }) },
		"two Binds": func(f func()) { pulled(func() { decorated(func() { decorated(f) }) }) },
		"two Pulls": func(f func()) { pulled(func() { pulled(func() { decorated(f) }) }) },
		"Binds of two": func(f func()) {
			decorated(func() { pulled(func() { decorated(func() { pulled(func() { decorated(f) }) }) }) })
		},
		"a Bind around all": func(f func()) { decorated(func() { pulled(f) }) },
		"a second Pull":     func(f func()) { pulled(func() { suspend.Yield() }); pulled(func() { decorated(f) }) },
		"after a Pull":      func(f func()) { pulled(func() { pulled(func() {}); decorated(f) }) },
		"after a Pull that is left in a Bind": func(f func()) {
			next, stop := suspend.Pull(func(yield func(int) bool) { decorated(func() { yield(1) }) })
			defer stop()
			next()
			f()
		},
		"a yield of the outer Pull": func(f func()) {
			yieldingOut(func(yield func()) { yield(); decorated(f) })
		},
		"a yield of the outer Pull in a Bind": func(f func()) {
			yieldingOut(func(yield func()) { decorated(func() { yield(); f() }) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
				nodes := 0
				suspendtest.Kill(t, func() (suspend.Spawner, func()) {
					nodes++
					n := w.Node(fmt.Sprint(nodes))
					return spawner(func(f func()) error { return n.Go(func() { within(f) }) }), n.Crash
				})
				return nil
			}, simulation.Options{Seed: 1}).Err)
		})
	}
}

// pulled calls f in the body of a Pull.
func pulled(f func()) {
	next, stop := suspend.Pull(func(func(int) bool) { f() })
	defer stop()
	next()
}

// yieldingOut calls f in the body of a Pull inside a Pull, with the yield of the outer one.
func yieldingOut(f func(yield func())) {
	next, stop := suspend.Pull(func(yield func(int) bool) {
		pulled(func() { f(func() { yield(1) }) })
	})
	defer stop()
	next()
	next()
}

// decorated calls f under a Task that decorates the caller's.
func decorated(f func()) { suspend.Bind(&decorator{suspend.Self()}, f) }

type spawner func(f func()) error

func (s spawner) Go(f func()) error { return s(f) }

// A Run in a task of a Group ends with this task. Its own tasks keep the locks that were handed over to them.
func TestKillOfARunInAGroup(t *testing.T) {
	inNodes(t, func(ctx context.Context, w *simulation.World, decorate func(n *simulation.Node) suspend.Spawner) error {
		for _, cancelled := range []bool{false, true} { // whether an earlier wait of the task was cancelled
			n := w.Node(fmt.Sprint("a", cancelled))
			var l mutex.RWMutex
			_ = l.LockContext(ctx)
			ended := false
			_ = decorate(n).Go(func() {
				defer func() { ended = true }()
				if cancelled {
					ctx, stop := context.WithCancel(bg)
					_ = suspend.Here().Go(stop)
					_, _ = suspend.Do(ctx, suspend.Op[int]{})
				}
				_ = fifo.Run(bg, func(ctx context.Context) error {
					l.Lock()
					defer l.Unlock()
					return suspend.Sleep(bg, time.Hour)
				})
			})
			_ = suspend.Sleep(ctx, time.Second)
			l.Unlock()
			n.Crash()
			_ = suspend.Sleep(ctx, time.Second)
			if !ended || !l.TryLock() {
				return errors.New("the task of the Run has not ended, or the lock is lost")
			}
		}
		return nil
	})
}

// A Kill that comes after a Resume takes effect in the next wait, even if a Bind begins or ends between the two.
func TestKillAroundABind(t *testing.T) {
	for name, task := range map[string]func(take func(), behind *bool){
		"a Bind begins": func(take func(), behind *bool) {
			take()
			decorated(func() { ready(); *behind = true })
		},
		"a Bind ends": func(take func(), behind *bool) {
			decorated(take)
			ready()
			*behind = true
		},
		"a Bind in a Pull begins": func(take func(), behind *bool) {
			take()
			pulled(func() { decorated(func() { ready(); *behind = true }) })
		},
		"a Bind in a Pull ends": func(take func(), behind *bool) {
			pulled(func() {
				decorated(take)
				ready()
				*behind = true
			})
		},
		"a Bind in a Pull is left": func(take func(), behind *bool) {
			next, stop := suspend.Pull(func(yield func(int) bool) { decorated(func() { take(); yield(1) }) })
			defer stop()
			next()
			ready()
			*behind = true
		},
		"a Bind in a Pull is entered": func(take func(), behind *bool) {
			next, stop := suspend.Pull(func(yield func(int) bool) {
				decorated(func() {
					_ = suspend.Sleep(bg, 0)
					yield(1)
					ready()
					*behind = true
				})
			})
			defer stop()
			next()
			take()
			next()
		},
		"a Bind in a Pull is entered in a Shield": func(take func(), behind *bool) {
			next, stop := suspend.Pull(func(yield func(int) bool) {
				decorated(func() {
					yield(1)
					take()
					*behind = true // if the Suspend in the Shield does not return
					ready()
					*behind = yield(2)
				})
			})
			defer stop()
			next()
			suspend.Shield(func() { next() })
			next()
		},
		"a Bind in a Pull is entered after a Shield": func(take func(), behind *bool) {
			next, stop := suspend.Pull(func(yield func(int) bool) {
				decorated(func() {
					yield(1)
					yield(2)
					take()
					ready()
					*behind = true
				})
			})
			defer stop()
			next()
			suspend.Shield(func() { next() })
			next()
		},
		"a Bind in a Pull in a Shield": func(take func(), behind *bool) {
			suspend.Shield(func() {
				pulled(func() { decorated(func() { take(); _ = suspend.Sleep(bg, 0) }) })
			})
			*behind = true
		},
		"a Bind in a Shield": func(take func(), behind *bool) {
			suspend.Shield(func() {
				decorated(func() { take(); _ = suspend.Sleep(bg, 0) })
			})
			*behind = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			var taken, behind bool
			require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
				n := w.Node("a")
				var m mvar.MVar[int]
				_ = n.Go(func() { task(func() { _, err := m.Take(bg); taken = err == nil }, &behind) })
				_ = suspend.Sleep(ctx, time.Second)
				m.TryPut(1)
				n.Crash()
				return suspend.Sleep(ctx, 10*time.Second)
			}, simulation.Options{Seed: 1}).Err)
			require.True(t, taken)
			require.False(t, behind, "a killed task continues")
		})
	}
}

// A Shield in the body of a Pull applies to the body between two calls of next, whether these are in a Shield or not. It does not
// apply to the task that called next first.
func TestShieldOfABody(t *testing.T) {
	same := func(f func()) { f() }
	shielded := func(f func()) { suspend.Shield(f) }
	shieldedInBind := func(f func()) { decorated(func() { suspend.Shield(f) }) }
	for name, c := range map[string]struct {
		within  func(f func()) // calls f in the body
		delayed bool
	}{
		"no Bind":                   {shielded, true},
		"in a Bind":                 {shieldedInBind, true},
		"around a Bind":             {func(f func()) { suspend.Shield(func() { decorated(f) }) }, true},
		"between two Binds":         {func(f func()) { shieldedInBind(func() { decorated(f) }) }, true},
		"around a Pull":             {func(f func()) { suspend.Shield(func() { pulled(f) }) }, true},
		"around a Pull with a Bind": {func(f func()) { shieldedInBind(func() { pulled(func() { decorated(f) }) }) }, true},
		"no Shield":                 {same, false},
		"no Shield, two Binds":      {func(f func()) { decorated(func() { decorated(f) }) }, false},
	} {
		for around, call := range map[string]func(f func()){"": same, ", next in a Shield": shielded} {
			for _, left := range []bool{false, true} {
				t.Run(fmt.Sprint(name, around, ", left ", left), func(t *testing.T) {
					inside := false
					require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
						n := w.Node("a")
						var m mvar.MVar[int]
						take := func() { _, err := m.Take(bg); inside = err == nil }
						_ = n.Go(func() {
							next, stop := suspend.Pull(func(yield func(int) bool) {
								c.within(func() {
									yield(1)
									yield(2)
									if !left {
										take()
									}
								})
							})
							call(func() { next() })
							next()
							if left {
								take() // the body does not end
								return
							}
							defer stop()
							next()
						})
						_ = suspend.Sleep(ctx, time.Second)
						_ = w.Node("b").Go(func() { _ = suspend.Sleep(bg, time.Second); m.TryPut(1) })
						n.Crash()
						return suspend.Sleep(ctx, 10*time.Second)
					}, simulation.Options{Seed: 1}).Err)
					require.Equal(t, c.delayed && !left, inside, "the task has waited to the end, although it was killed")
				})
			}
		}
	}
	t.Run("after a Bind that another call has left", func(t *testing.T) {
		inside := false
		require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
			n := w.Node("a")
			var m mvar.MVar[int]
			_ = n.Go(func() {
				next, stop := suspend.Pull(func(yield func(int) bool) {
					decorated(func() {
						decorated(func() { yield(1) })
						_, err := m.Take(bg)
						inside = err == nil
					})
				})
				defer stop()
				suspend.Shield(func() { next() })
				next()
			})
			_ = suspend.Sleep(ctx, time.Second)
			_ = w.Node("b").Go(func() { _ = suspend.Sleep(bg, time.Second); m.TryPut(1) })
			n.Crash()
			return suspend.Sleep(ctx, 10*time.Second)
		}, simulation.Options{Seed: 1}).Err)
		require.False(t, inside, "the Shield of the first call is still there")
	})
}

// ready performs a wait that ends at once, unless the task was killed.
func ready() {
	_, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) { return 1, true })
}

type decorator struct{ suspend.Task }
