package rate_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

func takes(l *rate.Limiter, most int) (n int) {
	for n < most && l.Allow(1) {
		n++
	}
	return n
}

// At first the bucket is full and has a whole burst, however slowly it is refilled.
func TestBurstOfASlowLimiter(t *testing.T) {
	for name, limit := range map[string]rate.Limit{
		"tiny":     math.SmallestNonzeroFloat64,
		"1e-12":    1e-12,
		"100years": rate.Every(100 * 365 * 24 * time.Hour),
		"a year":   rate.Every(365 * 24 * time.Hour),
	} {
		v := schedtest.NewVirtual()
		v.Bind(func() {
			l := rate.NewLimiter(limit, 200)
			if n := takes(l, 300); n != 200 {
				t.Errorf("%s: %d tokens of 200", name, n)
			}
			if l.Allow(0); l.Allow(1) {
				t.Errorf("%s: WaitN(0) has made a token", name)
			}
			l = rate.NewLimiter(limit, 5)
			l.SetLimit(1)
			if n := takes(l, 300); n != 5 {
				t.Errorf("%s: SetLimit left %d tokens of 5", name, n)
			}
		})
	}
}

// At one moment no more than a burst gets through.
func TestBurstOfAQuickLimiter(t *testing.T) {
	for _, limit := range []rate.Limit{2e9, 1.5e9, 1e9} {
		v := schedtest.NewVirtual()
		v.Bind(func() {
			if n := takes(rate.NewLimiter(limit, 3), 1000); n > 3+int(float64(limit)/1e9) {
				t.Errorf("%g/s: %d tokens at one moment, of a burst of 3", float64(limit), n)
			}
		})
	}
}

func TestTheRateIsExact(t *testing.T) {
	for _, limit := range []rate.Limit{3e5, 7e6, 6e8} {
		v := schedtest.NewVirtual()
		v.Bind(func() {
			l := rate.NewLimiter(limit, 1000)
			takes(l, 1000)
			n, steps := 0, 10000
			for range steps {
				v.Advance(time.Microsecond)
				n += takes(l, 10000)
			}
			want := float64(limit) * float64(steps) * 1e-6
			if float64(n) > want+1 || float64(n) < want-1 {
				t.Errorf("%g/s: %d tokens, and not %g", float64(limit), n, want)
			}
		})
	}
}

type zeroClock struct{ suspend.Spawner }

func (zeroClock) Now() time.Time { return time.Time{}.Add(time.Second) }

type onZero struct{ suspend.Task }

func (onZero) Spawner() suspend.Spawner { return zeroClock{suspend.Goroutines} }

func TestClockFromZero(t *testing.T) {
	suspend.Bind(&onZero{sched.NewThread()}, func() {
		if n := takes(rate.NewLimiter(1, 5), 10); n != 5 {
			t.Errorf("%d tokens of a full bucket of 5", n)
		}
	})
}

// A task of a loop begins a Then, and the loop ends. The executor of the Then is another scheduler, so the continuation is
// called, and the waiters behind it get their tokens.
func TestThenOfAnEndedLoop(t *testing.T) {
	l := rate.NewLimiter(rate.Every(50*time.Millisecond), 1)
	l.Allow(1)
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun, got := make(chan bool), make(chan error, 1)
	_ = loop.Go(func() {
		suspend.Then(bg, l.WaitOp(1), executor{}, func(_ time.Time, err error) { got <- err })
		close(begun)
	})
	<-begun
	_ = loop.Close()
	ctx, cancel := context.WithTimeout(bg, 2*time.Second)
	defer cancel()
	if err := l.Wait(ctx); err != nil {
		t.Error("behind it: ", err)
	}
	select {
	case <-got:
	default:
		t.Error("the Then was not called")
	}
}

type executor struct{}

func (executor) Execute(f func()) error { go suspend.Bind(nil, f); return nil }
