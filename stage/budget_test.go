package stage_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// thrice allows each task three attempts.
func thrice(_ error, try int) (after time.Duration, again bool) { return 0, try < 3 }

// During an outage, a budget limits the retries of all stages that share it, on every scheduler. Each task fails once.
func TestRetryBudgetInAnOutage(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		for _, budget := range []*stage.RetryBudget{nil, {}, {Ratio: 0.5, Burst: 4}} {
			var calls, given atomic.Int64
			fails := func(context.Context, int) (int, error) { calls.Add(1); return 0, errOops }
			o := stage.Options{Width: 3, Queue: 100, Retry: thrice, RetryBudget: budget, On: on}
			count := func(context.Context, int, error) { given.Add(1) }
			one := stage.New("one", fails, o).OnFail(count)
			other := stage.NewBatch("other", func(_ context.Context, in []int, _ []int) error { calls.Add(int64(len(in))); return errOops }, o).OnFail(count)
			const n = 200
			for i := range n {
				require.NoError(t, []stage.Flow[int, int]{one, other}[i%2].Submit(bg, i))
			}
			require.NoError(t, stage.Shutdown(bg, one, other))
			a, b := one.Stats(), other.Stats()
			retried, unretried := int64(a.Retried+b.Retried), int64(a.Unretried+b.Unretried)
			require.EqualValues(t, n, a.Failed+b.Failed)
			require.EqualValues(t, n, given.Load())
			require.Equal(t, n+retried, calls.Load())
			most, least := int64(2*n), int64(2*n)
			switch {
			case budget == nil:
			case budget.Ratio == 0:
				most, least = 10+n/10, n/10 // the bucket is full at first, so the tokens of the first tasks are lost
			default:
				most, least = 4+n/2, n/2
			}
			require.LessOrEqual(t, retried, most)
			require.GreaterOrEqual(t, retried, least)
			require.Equal(t, budget == nil, unretried == 0)
			require.GreaterOrEqual(t, retried+2*unretried, int64(2*n)-retried, "each task that has failed has had all its tries, or one was refused")
		}
	})
}

// Successful tasks refill the budget, up to the burst.
func TestRetryBudgetFillsAgain(t *testing.T) {
	type step struct {
		fail               bool
		tasks              int
		retried, unretried uint64
	}
	for burst, steps := range map[int][]step{
		1: {{true, 1, 1, 1}, {false, 9, 0, 0}, {true, 1, 1, 1}, {true, 9, 0, 9}, {true, 1, 1, 1}},
		2: {
			{true, 1, 2, 0}, // the task has used all its tries
			{true, 1, 0, 1}, {false, 8, 0, 0}, {true, 1, 1, 1},
			{false, 1000, 0, 0}, {true, 2, 2, 1},
		},
	} {
		fails := true
		s := stage.New("s", func(context.Context, int) (int, error) {
			if fails {
				return 0, errOops
			}
			return 1, nil
		}, stage.Options{Retry: thrice, RetryBudget: &stage.RetryBudget{Burst: burst}})
		for i, step := range steps {
			fails = step.fail
			before := s.Stats()
			for range step.tasks {
				_, _ = s.Do(bg, 0)
			}
			d := s.Stats().Sub(before)
			require.Equal(t, []uint64{step.retried, step.unretried}, []uint64{d.Retried, d.Unretried}, "burst %d, step %d", burst, i)
		}
		require.NoError(t, s.Shutdown(bg))
	}
}

func TestRetryBudgetPanics(t *testing.T) {
	for _, b := range []*stage.RetryBudget{{Ratio: -1}, {Burst: -1}} {
		schedtest.Panics(t, "stage: negative RetryBudget", func() {
			stage.New("s", func(context.Context, int) (int, error) { return 0, nil }, stage.Options{RetryBudget: b})
		})
	}
	schedtest.Panics(t, "stage: RetryBudget without Retry", func() {
		stage.New("s", func(context.Context, int) (int, error) { return 0, nil }, stage.Options{RetryBudget: &stage.RetryBudget{}})
	})
}

// A Climb gives the reason for a change of the width, and does not repeat it for the next sample.
func TestReasonsOfClimb(t *testing.T) {
	busy := func(width, done int, d time.Duration) stage.Sample {
		return stage.Sample{Width: width, MinQueue: 1, Done: done, Elapsed: d, Service: 10 * time.Millisecond}
	}
	idle := func(width, refused int) stage.Sample {
		return stage.Sample{Width: width, Done: 90, Refused: refused, Elapsed: time.Second, Service: 10 * time.Millisecond}
	}
	type step struct {
		s      stage.Sample
		width  int
		reason string
	}
	for name, steps := range map[string][]step{
		"bounds":  {{idle(1, 0), 2, "the bounds"}, {idle(1000, 0), 400, "the bounds"}},
		"at rest": {{idle(80, 0), 60, "less than half of the width was in use"}, {idle(16, 0), 16, "less than half of the width was in use"}},
		"refused": {{idle(8, 10), 10, "tasks were refused"}, {idle(10, 10), 8, "a larger width refused as many tasks"}},
		"bounds at rest": {
			{idle(400, 10), 400, ""}, {idle(400, 10), 400, ""}, {idle(1, 0), 2, "the bounds"}, {idle(400, 10), 400, "the bounds"},
		},
		"a trial that fails": {
			{busy(8, 50, time.Second), 8, ""}, {busy(8, 200, time.Second), 10, "trial of a larger width"},
			{busy(10, 50, time.Second), 10, "trial of a larger width"}, {busy(10, 200, 2*time.Second), 8, "the trial was no better"},
			{busy(8, 50, time.Second), 8, "the trial was no better"}, {busy(8, 200, time.Second), 6, "trial of a smaller width"},
		},
	} {
		c := stage.Climb(2, 400)
		reason := c.(interface{ Reason() string }).Reason
		require.Empty(t, reason())
		for i, s := range steps {
			require.Equal(t, s.width, c.Update(s.s), "%s, %d", name, i)
			require.Equal(t, s.reason, reason(), "%s, %d", name, i)
		}
	}
}

// steps is a Limiter that widens the stage at each Update.
type steps struct{ updates, asked int }

func (l *steps) Update(s stage.Sample) int {
	l.updates++
	return s.Width + l.updates%2
}

func (l *steps) Reason() string { l.asked++; return fmt.Sprint("update ", l.updates) }

// A mute hides the method Reason.
type mute struct{ of *steps }

func (m mute) Update(s stage.Sample) int { return m.of.Update(s) }

// twice is a Limiter that calls SetWidth during its first Update, and changes the width itself at the first Update or never.
type twice struct {
	set   func()
	adds  int
	calls int
}

func (l *twice) Update(s stage.Sample) int {
	if l.calls++; l.calls > 1 {
		return s.Width
	}
	l.set()
	return s.Width + l.adds
}

func (l *twice) Reason() string { return "twice" }

// If an Update changes nothing, a SetWidth during the Update is not undone.
func TestSetWidthDuringAnUpdate(t *testing.T) {
	for adds, want := range map[int]string{0: "3 SetWidth", 2: "12 twice"} {
		synctest.Test(t, func(t *testing.T) {
			l := &twice{adds: adds}
			s := stage.New("s", func(context.Context, int) (int, error) { time.Sleep(time.Millisecond); return 0, nil },
				stage.Options{Width: 10, Queue: 1000, Limit: l})
			l.set = func() { s.SetWidth(3) }
			for range 200 {
				require.NoError(t, s.Submit(bg, 0))
			}
			require.NoError(t, s.Shutdown(bg))
			require.Greater(t, l.calls, 1)
			require.Equal(t, want, fmt.Sprint(s.Stats().Width, " ", s.Stats().Reason))
		})
	}
}

// If a task is cancelled during the delay of a retry, the token of the retry is not returned.
func TestTokensOfCancelledRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := stage.Options{Width: 20, Queue: 100, RetryBudget: &stage.RetryBudget{Ratio: 0.0001, Burst: 10},
			Retry: func(error, int) (time.Duration, bool) { return time.Minute, true }}
		s := stage.New("s", func(context.Context, int) (int, error) { return 0, errOops }, o)
		ctx, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		for range 10 {
			go s.Do(ctx, 0)
		}
		time.Sleep(2 * time.Second)
		_, err := s.Do(bg, 0)
		require.Equal(t, errOops, err)
		require.EqualValues(t, 1, s.Stats().Unretried)
		require.NoError(t, s.Shutdown(bg))
	})
}

// Stats has the reason of the last change of the width: that of the Limiter, if it gives one, or that of SetWidth.
func TestReasonInStats(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &steps{}
			o := stage.Options{Width: 1, Queue: 1000, Limit: l}
			if quiet {
				o.Limit = mute{l}
			}
			s := stage.New("s", func(context.Context, int) (int, error) { time.Sleep(time.Millisecond); return 0, nil }, o)
			require.Empty(t, s.Stats().Reason)
			for range 200 {
				require.NoError(t, s.Submit(bg, 0))
			}
			require.NoError(t, s.Shutdown(bg))
			now := s.Stats()
			require.Greater(t, now.Width, 2)
			if quiet {
				require.Empty(t, now.Reason)
				require.Zero(t, l.asked)
			} else {
				require.Equal(t, fmt.Sprint("update ", 2*now.Width-3), now.Reason, "each second Update makes the stage wider by one")
				require.Equal(t, (l.updates+1)/2, l.asked, "only after a change")
			}
			s.SetWidth(5)
			require.Equal(t, "SetWidth", s.Stats().Reason)
		})
	}
}

// While a service is down, twenty tasks cause ten retries for the burst and two for the twenty tasks, instead of forty.
func ExampleRetryBudget() {
	calls := 0
	s := stage.New("mail", func(context.Context, string) (int, error) {
		calls++
		return 0, errOops
	}, stage.Options{
		Queue:       20,
		Retry:       func(_ error, try int) (after time.Duration, again bool) { return time.Millisecond, try < 3 },
		RetryBudget: &stage.RetryBudget{Ratio: 0.1},
	})
	for range 20 {
		_ = s.Submit(context.Background(), "ann")
	}
	_ = s.Shutdown(context.Background())
	fmt.Println(calls <= 32, s.Stats().Failed, "failed")
	// Output: true 20 failed
}
