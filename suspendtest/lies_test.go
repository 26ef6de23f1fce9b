package suspendtest_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest"
)

// A lie is a single wrong result of an otherwise correct scheduler, in its n'th Suspend or in the n'th Resume.
type lie func(n int32) func() suspendtest.SuspendFunc

var errLie = errors.New("a lie")

// once returns lies in which f replaces a Suspend.
func once(f func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error)) lie {
	return func(n int32) func() suspendtest.SuspendFunc {
		return func() suspendtest.SuspendFunc {
			var calls atomic.Int32
			return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
				if calls.Add(1) == n {
					return f(ctx, block)
				}
				return suspendtest.Direct(ctx, block)
			}
		}
	}
}

// onceResumed returns lies in which f replaces a Resume.
func onceResumed(f func(v *box, err error, r suspendtest.Resume) bool) lie {
	return func(n int32) func() suspendtest.SuspendFunc {
		var calls atomic.Int32
		return blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
			return block(func(v *box, err error) bool {
				if calls.Add(1) == n {
					return f(v, err, r)
				}
				return r(v, err)
			})
		})
	}
}

var lies = map[string]lie{
	"another value": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		_, err := suspendtest.Direct(ctx, block)
		return new(box), err
	}),
	"a value for a cancellation": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		v, err := suspendtest.Direct(ctx, block)
		if err != nil {
			v = new(box)
		}
		return v, nil
	}),
	"another error": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		v, _ := suspendtest.Direct(ctx, block)
		return v, errLie
	}),
	"an error more": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		v, err := suspendtest.Direct(ctx, block)
		if err == nil {
			err = errLie
		}
		return v, err
	}),
	"nothing": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		_, _ = suspendtest.Direct(ctx, block)
		return nil, nil
	}),
	"an early end": once(func(_ context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		_, _ = block(func(*box, error) bool { return true })
		return nil, nil
	}),
	"an exit": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		_, _ = suspendtest.Direct(ctx, block)
		runtime.Goexit()
		return nil, nil
	}),
	"a Bind that stays": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		v, err := suspendtest.Direct(ctx, block)
		suspend.Enter(sched.NewThread())
		return v, err
	}),
	"another goroutine": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (v *box, err error) {
		done := make(chan struct{})
		go func() { defer close(done); v, err = suspendtest.Direct(ctx, block) }()
		<-done
		return v, err
	}),
	"no block": once(func(context.Context, func(suspendtest.Resume) (*box, bool)) (*box, error) { return nil, nil }),
	"two blocks": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
		return suspendtest.Direct(ctx, func(r suspendtest.Resume) (*box, bool) {
			_, _ = block(r)
			return block(r)
		})
	}),
	"no panic": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (v *box, err error) {
		defer func() { _ = recover() }()
		return suspendtest.Direct(ctx, block)
	}),
	"another panic": once(func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (v *box, err error) {
		defer func() {
			if recover() != nil {
				panic(errLie)
			}
		}()
		return suspendtest.Direct(ctx, block)
	}),
	"false, but it was resumed":           onceResumed(func(v *box, err error, r suspendtest.Resume) bool { r(v, err); return false }),
	"true, but it was not resumed":        onceResumed(func(*box, error, suspendtest.Resume) bool { return true }),
	"true, whether it was resumed or not": onceResumed(func(v *box, err error, r suspendtest.Resume) bool { r(v, err); return true }),
	"resumed with another value":          onceResumed(func(v *box, err error, r suspendtest.Resume) bool { return r(new(box), err) }),
	"resumed with an error":               onceResumed(func(v *box, err error, r suspendtest.Resume) bool { return r(v, errLie) }),
}

// told is a lie in the n'th call of a check. Exactly one look of the check finds it.
type told struct {
	check, lie string
	n          int32
}

var tolds = []told{
	{"01/block-runs-once-on-the-caller", "no block", 10},
	{"01/block-runs-once-on-the-caller", "two blocks", 11},
	{"01/block-holds-nothing", "false, but it was resumed", 2},
	{"01/block-does-not-run-if-ctx-is-done", "another value", 10},
	{"01/block-does-not-run-if-ctx-is-done", "a value for a cancellation", 10},
	{"01/block-does-not-run-if-ctx-is-done", "nothing", 10},
	{"01/block-does-not-run-if-ctx-is-done", "another error", 10},
	{"01/suspend-inside-block-panics", "another value", 1},
	{"01/suspend-inside-block-panics", "nothing", 1},
	{"01/suspend-inside-block-panics", "an error more", 1},
	{"01/suspend-inside-block-panics", "no panic", 2},
	{"01/a-failure-found-in-block-is-delivered", "false, but it was resumed", 1},
	{"01/a-failure-found-in-block-is-delivered", "another error", 1},
	{"01/a-failure-found-in-block-is-delivered", "another value", 1},

	{"02/one-winner", "a value for a cancellation", 11},
	{"02/one-winner", "resumed with another value", 1},
	{"02/one-winner", "false, but it was resumed", 1},
	{"02/one-winner", "true, whether it was resumed or not", 2},
	{"02/resume-after-resume-is-false", "another value", 1},
	{"02/resume-after-resume-is-false", "nothing", 1},
	{"02/resume-after-resume-is-false", "false, but it was resumed", 1},
	{"02/resume-after-resume-is-false", "true, whether it was resumed or not", 2},
	{"02/resume-after-resume-is-false", "true, whether it was resumed or not", 3},
	{"02/resume-after-cancellation-is-false-and-delivers-nothing", "true, whether it was resumed or not", 1},
	{"02/resume-after-cancellation-is-false-and-delivers-nothing", "false, but it was resumed", 2},
	{"02/resume-after-cancellation-is-false-and-delivers-nothing", "another value", 2},
	{"02/resume-after-cancellation-is-false-and-delivers-nothing", "an error more", 2},
	{"02/resume-after-cancel-has-returned-is-false", "true, whether it was resumed or not", 10},

	{"03/resume-true-is-returned-even-if-ctx-is-done", "false, but it was resumed", 1},
	{"03/resume-true-is-returned-even-if-ctx-is-done", "another value", 1},
	{"03/resume-true-is-returned-even-if-ctx-is-done", "an error more", 1},
	{"03/resume-true-is-returned-even-if-ctx-is-done", "false, but it was resumed", 3},
	{"03/resume-true-is-returned-even-if-ctx-is-done", "another value", 3},
	{"03/resume-true-is-returned-even-if-ctx-is-done", "an error more", 3},
	{"03/value-and-error-are-delivered-together", "another value", 1},
	{"03/value-and-error-are-delivered-together", "another error", 1},

	{"05/resume-before-block-returns", "false, but it was resumed", 1},
	{"05/resume-before-block-returns", "another value", 2},
	{"05/resume-before-block-returns", "an error more", 2},
	{"05/resume-after-suspend-returned-is-false", "true, but it was not resumed", 10},
	{"05/resume-after-close-is-false", "true, but it was not resumed", 3},

	{"06/value-of-block-dominates-cancellation", "another value", 1},
	{"06/value-of-block-dominates-cancellation", "an error more", 1},
	{"06/value-of-block-dominates-cancellation", "another value", 2},
	{"06/value-of-block-dominates-cancellation", "an error more", 2},
	{"06/resumer-is-dead-after-a-value-of-block", "another value", 1},
	{"06/resumer-is-dead-after-a-value-of-block", "an error more", 1},
	{"06/resumer-is-dead-after-a-value-of-block", "true, but it was not resumed", 1},
	{"06/resumer-is-dead-after-a-value-of-block", "true, but it was not resumed", 2},

	{"07/panic-in-block-propagates-and-kills-the-resumer", "another panic", 1},
	{"07/panic-in-block-propagates-and-kills-the-resumer", "no panic", 1},
	{"07/panic-in-block-propagates-and-kills-the-resumer", "true, but it was not resumed", 1},
	{"07/goexit-in-block-ends-the-task-and-kills-the-resumer", "another goroutine", 1},
	{"07/goexit-in-block-ends-the-task-and-kills-the-resumer", "true, but it was not resumed", 1},

	{"08/stale-resumers-do-not-touch-a-later-suspension", "an error more", 10},
	{"08/stale-resumers-do-not-touch-a-later-suspension", "another value", 10},
	{"08/stale-resumers-do-not-touch-a-later-suspension", "nothing", 10},
	{"08/stale-resumers-do-not-touch-a-later-suspension", "false, but it was resumed", 1},
	{"08/stale-resumers-do-not-touch-a-later-suspension", "true, but it was not resumed", 11},
	{"08/stale-resumers-do-not-touch-a-later-suspension", "true, but it was not resumed", 813},
	{"08/late-unpark-does-not-disturb-the-next-task", "another value", 10},
	{"08/late-unpark-does-not-disturb-the-next-task", "an error more", 10},
	{"08/late-unpark-does-not-disturb-the-next-task", "false, but it was resumed", 10},

	{"09/alternating-contexts", "an error more", 10},
	{"09/cancellation-at-every-point", "another value", 1},
	{"09/cancellation-at-every-point", "a value for a cancellation", 1},
	{"09/cancellation-at-every-point", "another error", 1},
	{"09/cancellation-at-every-point", "two blocks", 20},

	{"10/nothing-is-retained-of-a-task-that-has-ended", "true, but it was not resumed", 10},
	{"13/resume-happens-before-the-return-of-suspend", "another value", 10},
	{"13/resume-happens-before-the-return-of-suspend", "nothing", 10},
	{"13/resume-happens-before-the-return-of-suspend", "an exit", 210},

	{"Go/goexit-ends-one-task-only", "an exit", 2},
	{"Bind/nil-forbids", "another value", 2},
	{"Bind/nil-forbids", "an error more", 2},
	{"Bind/nests-and-restores", "another value", 1},
	{"Bind/nests-and-restores", "an error more", 1},
	{"Bind/nests-and-restores", "a Bind that stays", 3},
	{"Bind/a-goroutine-started-by-a-task-waits-by-itself", "true, but it was not resumed", 3},

	{"Execute/a-callback-may-resume", "false, but it was resumed", 1},
	{"Execute/a-callback-may-resume", "another value", 1},
	{"Timers/a-callback-must-not-suspend", "false, but it was resumed", 1},
	{"Ending/a-task-that-is-cancelled-ends", "an exit", 4},
	{"Ending/a-task-that-is-resumed-ends", "another value", 1},
}
