package stage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

func answerOf(v int, err error) string {
	var panicked *suspend.PanicError
	switch {
	case err == nil:
		return fmt.Sprint(v)
	case errors.Is(err, stage.ErrFull):
		return "full"
	case errors.Is(err, stage.ErrDisplaced):
		return "displaced"
	case errors.Is(err, stage.ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &panicked):
		return "panic"
	case errors.Is(err, suspend.ErrAbandoned):
		return "abandoned"
	case errors.Is(err, errOops):
		return "oops"
	}
	return err.Error()
}

// TestModel compares random programs with the model, event by event, on each scheduler.
func TestModel(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		rapid.Check(t, func(t *rapid.T) { runModel(t, on) })
	})
}

func runModel(t *rapid.T, on suspend.Spawner) {
	o := stage.Options{
		Width:  rapid.IntRange(1, 3).Draw(t, "width"),
		Queue:  rapid.IntRange(1, 3).Draw(t, "queue"),
		LIFO:   rapid.Bool().Draw(t, "lifo"),
		Reject: rapid.Bool().Draw(t, "reject"),
	}
	levels := rapid.IntRange(1, 3).Draw(t, "levels")
	level := func(id int) int { return id % levels }
	m, r := newModel(o, level), newReal(on, o, level)
	defer r.drop()
	var calls sync.WaitGroup
	isDo := map[int]bool{}
	next := 0
	call := func(f func(ctx context.Context, id int) (answer int, ended bool, err error)) (id int) {
		id = next
		next++
		ctx, cancel := context.WithCancel(bg)
		r.cancels[id] = cancel
		calls.Add(1)
		require.NoError(t, on.Go(func() {
			defer calls.Done()
			if v, ended, err := f(ctx, id); ended || err != nil {
				r.mu.Lock()
				r.answers[id] = answerOf(v, err)
				r.mu.Unlock()
			}
		}))
		return id
	}
	one := func(t *rapid.T, of map[int]bool, what string) int {
		return rapid.SampledFrom(slices.Sorted(maps.Keys(of))).Draw(t, what)
	}
	let := func(id int, how command) {
		m.let(id, how)
		r.let(id, how)
	}
	acts := map[string]func(*rapid.T){
		"Submit": func(*rapid.T) {
			m.offer(call(func(ctx context.Context, id int) (int, bool, error) { return 0, false, r.s.Submit(ctx, id) }), false)
		},
		"TrySubmit": func(*rapid.T) {
			m.offer(call(func(ctx context.Context, id int) (int, bool, error) { return 0, false, r.s.TrySubmit(ctx, id) }), true)
		},
		"Do": func(*rapid.T) {
			m.mayEnd[next], isDo[next] = true, true
			m.offer(call(func(ctx context.Context, id int) (int, bool, error) {
				v, err := r.s.Do(ctx, id)
				return v, true, err
			}), false)
		},
		"Begin": func(*rapid.T) {
			m.mayEnd[next] = true
			m.offer(call(func(ctx context.Context, id int) (int, bool, error) {
				f, err := r.s.Begin(ctx, id)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.futures[id] = f
				return 0, false, err
			}), false)
		},
		"let": func(t *rapid.T) {
			id := one(t, m.busy, "handler")
			hows := []command{succeed, fail, later, panics, again, exit}
			if isDo[id] { // it may run on its caller, which exit would end; and with again the order is not known
				hows = hows[:4]
			}
			let(id, rapid.SampledFrom(hows).Draw(t, "how"))
		},
		"cancel": func(t *rapid.T) {
			id := rapid.IntRange(0, next-1).Draw(t, "call")
			m.cancel(id, isDo[id])
			r.cancels[id]()
		},
		"SetWidth": func(t *rapid.T) {
			m.width = rapid.IntRange(1, 3).Draw(t, "width")
			m.admit()
			m.begin()
			r.s.SetWidth(m.width)
		},
		"Close": func(*rapid.T) {
			m.close(false)
			calls.Go(func() { _ = r.s.Shutdown(bg) })
		},
		"cut": func(*rapid.T) {
			m.close(true)
			_ = r.s.Shutdown(over)
		},
	}
	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) { agree(t, r, m) },
		"act": func(t *rapid.T) {
			often := []string{"Submit", "TrySubmit", "Do", "Begin", "SetWidth"}
			if len(m.busy) > 0 {
				often = append(often, "let")
			}
			if next > 0 {
				often = append(often, "cancel")
			}
			acts[rapid.SampledFrom(append(slices.Repeat(often, 10), "Close", "Close", "cut")).Draw(t, "what")](t)
		},
	})
	m.close(true)
	_ = r.s.Shutdown(over)
	agree(t, r, m)
	for id := range maps.Clone(m.busy) {
		let(id, succeed)
	}
	require.NoError(t, r.s.Shutdown(bg))
	calls.Wait()
	agree(t, r, m)
	for id := range next {
		r.compare(t, m, id, isDo[id])
		r.cancels[id]()
	}
}

// compare compares the end of a task with the model: its result, and its dead letters.
func (r *real) compare(t *rapid.T, m *model, id int, isDo bool) {
	want := m.answers[id]
	require.Equal(t, m.dead[id], r.dead[id] == 1, "dead letters of %d: %d", id, r.dead[id])
	require.LessOrEqual(t, r.dead[id], 1)
	switch f := r.futures[id]; {
	case isDo && m.gone[id]:
		require.Contains(t, []string{"cancelled", want}, r.answers[id], "Do of %d", id) // the end of the handler may win
	case isDo:
		require.Equal(t, want, r.answers[id], "Do of %d", id)
	case f != nil:
		v, ok, err := f.Try()
		require.True(t, ok, "%d has no answer", id)
		require.Equal(t, want, answerOf(v, err), "Begin of %d", id)
	case r.answers[id] != "":
		require.Equal(t, want, r.answers[id], "call of %d", id)
	}
}

// agree waits until the stage has the state of the model.
func agree(t *rapid.T, r *real, m *model) {
	for end := time.Now().Add(schedtest.Deadline / 30); ; suspend.Yield() {
		err := r.equal(m)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

var over = func() context.Context {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	return ctx
}()
