package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// These programs are hostile: each changes requests that are about to be sent, or tasks that wait for them.

// A hooked context calls f when a driver that is about to send asks for its Err.
type hooked struct {
	context.Context
	f func()
}

func (h *hooked) Err() error {
	var pcs [30]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.HasSuffix(f.Function, "fetch.(*driver).idle") {
			h.f()
			break
		}
	}
	return h.Context.Err()
}

// An All outside the Run joins a request of the Run, and makes further requests.
func TestAStrangerGetsAllItsKeys(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	stranger := func(ctx context.Context, src *numbers) error {
		done := make(chan error)
		go func() { _, err := src.All(ctx, []int{1, 2, 3}); done <- err }()
		return <-done
	}
	src := newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		return fetch.Together(ctx, getter(src, 1), func(ctx context.Context) error { return stranger(ctx, src) })
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1, 2, 3}}, src.Batches())
}

func TestCloseReachesARequestThatIsBeingSent(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	src := newNumbers(fetch.SourceOptions{})
	in, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := &hooked{Context: in}
	ctx, s := fetch.Open(h, fetch.Options{})
	h.f = sync.OnceFunc(func() { s.Close() })
	require.ErrorIs(t, getter(src, 1)(ctx), suspend.ErrEnded)
	require.Empty(t, src.Batches())
}

// With -race: a request moves to another driver while the first driver looks at the context of its waiter.
func TestTwoDriversLookAtOneContext(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	src := newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		in, cancel := context.WithCancel(ctx)
		defer cancel()
		var looks atomic.Int32
		second, outsider := make(chan struct{}), make(chan error, 1)
		h := &hooked{Context: in, f: func() {
			switch looks.Add(1) {
			case 1:
				go func() { outsider <- getter(src, 1)(ctx) }()
				<-second
			case 2:
				close(second)
			}
		}}
		_, err := src.Get(h, 1)
		return errors.Join(err, <-outsider)
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1}}, src.Batches())
}

// A rude context panics after the test has told it to.
type rude struct {
	context.Context
	on *atomic.Bool
}

func (r rude) ask() {
	if r.on.Load() {
		panic("rude")
	}
}

func (r rude) Done() <-chan struct{} { r.ask(); return r.Context.Done() }
func (r rude) Err() error            { r.ask(); return r.Context.Err() }

func TestAContextThatPanicsHurtsNobodyElse(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	src := newNumbers(fetch.SourceOptions{})
	var on atomic.Bool
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		in, cancel := context.WithCancel(ctx)
		defer cancel()
		return fetch.Together(ctx, func(context.Context) error {
			defer func() { _ = recover() }()
			_, err := src.Get(rude{in, &on}, 1)
			return err
		}, func(ctx context.Context) error {
			on.Store(true)
			return getter(src, 2)(ctx)
		})
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1, 2}}, src.Batches())
}

// Get and All return a value even if the session does not remember it.
func TestADirectSourceReturnsWhatIsNotRemembered(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	upstream := fmt.Errorf("upstream: %w", context.Canceled)
	for want, f := range map[error]func(ctx context.Context, end func()) (int, error){
		errOdd:           func(context.Context, func()) (int, error) { return 0, fetch.Transient(errOdd) },
		upstream:         func(context.Context, func()) (int, error) { return 0, upstream },
		context.Canceled: func(ctx context.Context, end func()) (int, error) { end(); return 0, ctx.Err() },
	} {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		once := fetch.New("once", func(ctx context.Context, b *fetch.Batch[int, int]) error {
			calls++
			_, err := f(ctx, cancel)
			return err
		}, fetch.SourceOptions{Immediate: true, Inline: true})
		require.NoError(t, fetch.Run(parent, func(ctx context.Context) error {
			own := context.WithoutCancel(ctx)
			_, err := once.Get(own, 1)
			require.ErrorIs(t, err, want)
			_, err = once.All(own, []int{1, 1})
			require.ErrorIs(t, err, want)
			require.Equal(t, 2, min(calls, 2), "it is asked again")
			stats := fetch.Of(ctx).Stats()
			require.Equal(t, []int{3, 0, calls}, []int{stats.Gets, stats.Shared, stats.Batches})
			return nil
		}, fetch.Options{}))
	}
}

// The caller of Do runs an effect in the same way as a source.
func TestDoOfAnEffectThatItsCallerRuns(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	e := fetch.NewEffect("effect", func(_ context.Context, b *fetch.Batch[int, int]) error {
		b.Set(b.Keys()[0], 2*b.Keys()[0])
		return nil
	}, fetch.SourceOptions{Immediate: true, Inline: true})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		vs, err := fetch.Map(ctx, []int{1, 2, 1}, e.Do)
		require.Equal(t, []int{2, 4, 2}, vs)
		require.Equal(t, fetch.Stats{Batches: 3, Keys: 3, Gets: 3}, fetch.Of(ctx).Stats())
		return err
	}, fetch.Options{}))
}

// Several goroutines want to run a source, but only one of them may. The others wait, and no key is loaded twice.
func TestMaxOpenHoldsForASourceThatItsCallerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most, calls atomic.Int32
		release := make(chan struct{})
		src := fetch.New("memory", func(_ context.Context, b *fetch.Batch[int, int]) error {
			most.Store(max(most.Load(), open.Add(1)))
			defer open.Add(-1)
			calls.Add(1)
			<-release
			b.Set(b.Keys()[0], 2*b.Keys()[0])
			return nil
		}, fetch.SourceOptions{MaxOpen: 1, Immediate: true, Inline: true})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		var all sync.WaitGroup
		var vs [5]int
		for k := range 4 {
			all.Go(func() { vs[k], _ = src.Get(ctx, k) })
		}
		all.Go(func() { vs[4], _ = src.Get(ctx, 4) })
		synctest.Wait()
		close(release)
		all.Wait()
		s.Close()
		require.Equal(t, [5]int{0, 2, 4, 6, 8}, vs)
		require.Equal(t, []int32{1, 5}, []int32{most.Load(), calls.Load()})
	})
}

// A source that ends the sending goroutine does not affect other sources. In a Run, the caller of Run finally exits.
func TestAnInlineSourceThatExitsKeepsNobodyWaiting(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, within := range []bool{false, true} {
		src := fetch.New("exits", func(context.Context, *fetch.Batch[int, int]) error { runtime.Goexit(); return nil }, fetch.SourceOptions{Inline: true})
		other, effect := newNumbers(fetch.SourceOptions{Inline: true}), fetch.NewEffect("effect", func(context.Context, *fetch.Batch[int, int]) error { return nil }, fetch.SourceOptions{})
		var one, two, three error
		body := func(ctx context.Context) error {
			return fetch.Together(ctx,
				func(ctx context.Context) error { _, one = src.Get(ctx, 1); return nil },
				func(ctx context.Context) error { two = getter(other, 1)(ctx); return nil },
				func(ctx context.Context) error { _, three = effect.Do(ctx, 1); return nil })
		}
		returned, over := false, make(chan struct{})
		go func() {
			defer close(over)
			if within {
				ctx, s := fetch.Open(t.Context(), fetch.Options{})
				_ = body(ctx)
				s.Close()
			} else {
				_ = fetch.Run(t.Context(), body, fetch.Options{})
			}
			returned = true
		}()
		<-over
		require.Equal(t, within, returned)
		require.ErrorIs(t, one, suspend.ErrAbandoned)
		require.NoError(t, two)
		require.ErrorIs(t, three, fetch.ErrNotFound)
	}
}

// A panic of the function that OnBatch returns counts as a panic of the source, like a panic of OnBatch itself.
func TestAPanicOfOnBatchIsRaisedInTheWaiters(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, o := range []fetch.SourceOptions{{}, {Inline: true}} {
		src := newNumbers(o)
		hook := fetch.Options{OnBatch: func(ctx context.Context, _ fetch.BatchInfo) (context.Context, func(error)) {
			return ctx, func(error) { panic("after") }
		}}
		require.PanicsWithValue(t, "after", func() { _ = fetch.Run(t.Context(), getter(src, 1), hook) })
	}
}

// After a panic, OnBatch gets no report of a success.
func TestOnBatchOfAPanic(t *testing.T) {
	src := fetch.New("panics", func(context.Context, *fetch.Batch[int, int]) error { panic("boom") }, fetch.SourceOptions{})
	var told error
	hook := fetch.Options{OnBatch: func(ctx context.Context, _ fetch.BatchInfo) (context.Context, func(error)) {
		return ctx, func(err error) { told = err }
	}}
	require.PanicsWithValue(t, "boom", func() {
		_ = fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, hook)
	})
	require.ErrorIs(t, told, suspend.ErrAbandoned)
}

// A goroutine that load has started sets a value after load has panicked. This has no effect.
func TestAnAnswerAfterAPanicChangesNothing(t *testing.T) {
	var kept *fetch.Batch[int, int]
	src := fetch.New("panics", func(_ context.Context, b *fetch.Batch[int, int]) error { kept = b; panic("boom") }, fetch.SourceOptions{})
	hook := fetch.Options{OnBatch: func(ctx context.Context, _ fetch.BatchInfo) (context.Context, func(error)) {
		return ctx, func(error) { kept.Set(1, 1) }
	}}
	require.PanicsWithValue(t, "boom", func() {
		_ = fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, hook)
	})
}

// After Close, the error of a source is ErrEnded. A value that it has set nevertheless is not lost.
func TestCloseIsTheErrorOfASourceThatHeedsIt(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	started := make(chan struct{}, 2)
	heeds := fetch.ByKey("heeds", 1, func(ctx context.Context, _ int) (int, error) {
		started <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	}, fetch.SourceOptions{})
	deaf := fetch.New("deaf", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		started <- struct{}{}
		<-ctx.Done()
		b.Set(1, 2)
		return nil
	}, fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{Eager: true})
	var one, two error
	v := 0
	var all sync.WaitGroup
	all.Go(func() { _, one = heeds.Get(ctx, 1) })
	all.Go(func() { v, two = deaf.Get(ctx, 1) })
	<-started
	<-started
	s.Close()
	all.Wait()
	require.ErrorIs(t, one, suspend.ErrEnded)
	require.NoError(t, two)
	require.Equal(t, 2, v)
}

// An effect that is still queued when its context ends is not sent.
func TestAnEffectInTheQueueIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, calls := make(chan struct{}), 0
		e := fetch.NewEffect("effect", func(_ context.Context, b *fetch.Batch[int, int]) error {
			calls++
			<-release
			b.Set(b.Keys()[0], 1)
			return nil
		}, fetch.SourceOptions{MaxOpen: 1, Immediate: true})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		two, cancel := context.WithCancel(ctx)
		var errs [2]error
		var all sync.WaitGroup
		all.Go(func() { _, errs[0] = e.Do(ctx, 1) })
		synctest.Wait()
		all.Go(func() { _, errs[1] = e.Do(two, 2) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		all.Wait()
		s.Close()
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], context.Canceled)
		require.Equal(t, 1, calls)
		require.Equal(t, 1, s.Stats().Dropped)
	})
}

// A source may sort its keys, for example for SQL. Each value still belongs to its key.
func TestASourceMaySortItsKeys(t *testing.T) {
	byMap := fetch.ByMap("by map", func(_ context.Context, ks []int) (map[int]int, error) {
		slices.Sort(ks)
		m := map[int]int{}
		for _, k := range ks {
			m[k] = 10 * k
		}
		return m, nil
	}, fetch.SourceOptions{})
	set := fetch.New("set", func(_ context.Context, b *fetch.Batch[int, int]) error {
		slices.Sort(b.Keys())
		for _, k := range b.Keys() {
			b.Set(k, 10*k)
		}
		return nil
	}, fetch.SourceOptions{})
	for _, src := range []*fetch.Source[int, int]{byMap, set} {
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			vs, err := src.All(ctx, []int{3, 1, 2})
			require.Equal(t, []int{30, 10, 20}, vs)
			return err
		}, fetch.Options{}))
	}
}

// A batch holds no lock while it calls the methods of an error, because they may use the batch.
func TestAnErrorMayUseItsBatch(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	src := fetch.New("src", func(_ context.Context, b *fetch.Batch[int, int]) error {
		return curious{func() { b.Set(1, 1) }}
	}, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.Get(ctx, 1)
		require.ErrorContains(t, err, "curious")
		return nil
	}, fetch.Options{}))
}

type curious struct{ f func() }

func (c curious) Error() string { return "curious" }
func (c curious) Is(error) bool { c.f(); return false }
func (c curious) As(any) bool   { c.f(); return false }
