package scope_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A groupModel is the state of a Group after the calls so far.
type groupModel struct {
	policy                     scope.Policy
	children                   []*groupChild
	closing, cancelled, enough bool
	cause                      error // the cause of the cancellation
	failures                   []error
	known                      bool // the cause of the cancellation is a failure
}

type groupChild struct {
	gate    promise.Promise[int]
	handle  *scope.Child[int] // nil if Go started the child
	stopped error             // the cause, if its handle has cancelled it
}

func (m *groupModel) ended() bool { return m.closing && len(m.children) == 0 }

// fail records a failure. After Cancel(nil), a cancellation error is not a failure.
func (m *groupModel) fail(err error) {
	if !(m.enough && err == context.Canceled) && (m.policy == scope.Collect || m.failures == nil) {
		m.failures = append(m.failures, err)
	}
}

func (m *groupModel) cancel(cause error) {
	switch {
	case m.ended():
		return
	case cause != nil:
		m.fail(cause)
		m.known = m.known || !m.cancelled
	case !m.cancelled:
		m.enough = true
	}
	m.stop(cause)
}

// stop cancels the context. A nil cause stands for context.Canceled.
func (m *groupModel) stop(cause error) {
	if !m.cancelled {
		m.cancelled, m.cause = true, cause
	}
	if m.cause == nil {
		m.cause = context.Canceled
	}
}

// err returns the expected error of each Close and Shutdown.
func (m *groupModel) err() error {
	if len(m.failures) == 1 {
		return m.failures[0]
	}
	return errors.Join(m.failures...)
}

// Random sequences of calls of a Group and its handles agree with a list of children and a list of failures.
func TestGroupAgainstModel(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		rapid.Check(t, func(rt *rapid.T) {
			parent, stop := schedtest.WithCancel()
			late, end := schedtest.WithCancel()
			end()
			m := &groupModel{policy: rapid.SampledFrom([]scope.Policy{scope.FirstError, scope.Collect}).Draw(rt, "policy")}
			g := scope.Open(parent, m.policy)
			var begun []*groupChild
			var results []error
			closes := 0
			closing := func(f func() error) {
				m.closing = true
				closes++
				_ = on.Go(func() { results = append(results, f()) })
			}
			// begin records a child that is started now, or returns its failure.
			begin := func(c *groupChild) error {
				switch {
				case m.ended():
					return suspend.ErrEnded
				case m.cancelled:
					ctx, stop := cancel.New(bg)
					stop(m.cause)
					err := suspend.Err(ctx)
					if !m.known {
						m.fail(err)
					}
					m.known = true
					return err
				}
				m.children, begun = append(m.children, c), append(begun, c)
				return nil
			}
			pick := func(rt *rapid.T) int {
				if len(m.children) == 0 {
					rt.Skip("no child")
				}
				return rapid.IntRange(0, len(m.children)-1).Draw(rt, "i")
			}
			returns := func(err error) func(rt *rapid.T) {
				return func(rt *rapid.T) {
					i := pick(rt)
					c := m.children[i]
					m.children = slices.Delete(m.children, i, i+1)
					require.True(rt, c.gate.Resolve(7, err))
					if err != nil && (c.stopped == nil || err != context.Canceled && err != c.stopped) {
						m.fail(err)
						if m.policy == scope.FirstError {
							m.stop(err)
						}
					}
					schedtest.Settle()
					if c.handle != nil {
						v, done, got := c.handle.Try()
						require.True(rt, done)
						require.Equal(rt, err, got)
						if err == nil {
							require.Equal(rt, 7, v)
						}
					}
				}
			}
			agree := func(rt *rapid.T) {
				schedtest.Settle()
				if !m.ended() {
					require.Empty(rt, results)
					return
				}
				require.Len(rt, results, closes)
				for _, err := range results {
					require.Equal(rt, m.err(), err)
				}
			}
			rarely := func(rt *rapid.T, n int) {
				for range n {
					if rapid.Bool().Draw(rt, "rarely") {
						rt.Skip()
					}
				}
			}
			defer func() { // also after a failure
				for _, c := range begun {
					_ = c.gate.Fill(0)
				}
				schedtest.Settle()
			}()
			rt.Repeat(map[string]func(*rapid.T){
				"go": func(rt *rapid.T) {
					c := new(groupChild)
					start := func() { g.Go(on, func(context.Context) error { _, err := c.gate.Await(bg); return err }) }
					if begin(c) == suspend.ErrEnded {
						schedtest.Panics(t, "scope: Go after the end of the scope", start)
						return
					}
					start()
				},
				"start": func(rt *rapid.T) {
					c := new(groupChild)
					want := begin(c)
					c.handle = scope.Start(g, on, func(context.Context) (int, error) { return c.gate.Await(bg) })
					_, failed, err := c.handle.Try()
					require.Equal(rt, want != nil, failed)
					if want == suspend.ErrEnded {
						require.ErrorIs(rt, err, want)
					} else {
						require.Equal(rt, want, err)
					}
				},
				"return":     returns(nil),
				"fail":       returns(errOops),
				"be stopped": returns(context.Canceled),
				"stop": func(rt *rapid.T) {
					if c := m.children[pick(rt)]; c.handle != nil && c.stopped == nil {
						c.handle.Cancel(nil)
						c.stopped = context.Canceled
						if m.cancelled {
							c.stopped = m.cause
						}
					}
				},
				"cancel": func(rt *rapid.T) {
					rarely(rt, 4)
					if !m.ended() {
						cause := rapid.SampledFrom([]error{nil, errOops}).Draw(rt, "cause")
						g.Cancel(cause)
						m.cancel(cause)
					}
				},
				"parent": func(rt *rapid.T) {
					rarely(rt, 4)
					stop()
					m.stop(nil)
				},
				"close":    func(rt *rapid.T) { rarely(rt, 5); m.cancel(nil); closing(g.Close) },
				"shutdown": func(rt *rapid.T) { rarely(rt, 5); closing(func() error { return g.Shutdown(bg) }) },
				"shutdown late": func(rt *rapid.T) {
					rarely(rt, 5)
					if len(m.children) > 0 {
						m.cancel(context.Canceled)
					}
					closing(func() error { return g.Shutdown(late) })
				},
				"": agree,
			})
			closing(func() error { return g.Shutdown(bg) })
			for len(m.children) > 0 {
				returns(nil)(rt)
			}
			agree(rt)
		})
	})
}
