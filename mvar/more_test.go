package mvar_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

func TestReadIsServedBeforeTakersAndStealsNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		m := mvar.New[int]()
		var order []string
		_ = s.Go(func() { _, _ = m.Take(bg); order = append(order, "take") })
		for range 3 {
			_ = s.Go(func() {
				if v, err := m.Read(bg); v != 7 || err != nil {
					t.Errorf("Read = %d, %v", v, err)
				}
				order = append(order, "read")
			})
		}
		suspend.Yield()
		_ = m.Put(bg, 7)
		if _, ok := m.TryRead(); ok {
			t.Error("the taker did not get the value")
		}
		for len(order) < 4 {
			suspend.Yield()
		}
		if order[3] != "take" {
			t.Errorf("order %v", order)
		}
		_ = m.Put(bg, 8)
		for range 2 {
			if v, err := m.Read(bg); v != 8 || err != nil {
				t.Errorf("Read = %d, %v", v, err)
			}
		}
		if v, ok := m.TryRead(); v != 8 || !ok {
			t.Errorf("TryRead = %d, %v", v, ok)
		}
	})
}

func TestSwap(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		m := mvar.NewFull(1)
		if v, err := m.Swap(bg, 2); v != 1 || err != nil {
			t.Errorf("Swap = %d, %v", v, err)
		}
		if v, _ := m.Take(bg); v != 2 {
			t.Errorf("Take = %d", v)
		}
		// A Swap and a Take wait. The first Put resumes the Swap, and its value goes to the Take behind it.
		swapped, taken := 0, 0
		_ = s.Go(func() { swapped, _ = m.Swap(bg, 20) })
		_ = s.Go(func() { taken, _ = m.Take(bg) })
		suspend.Yield()
		_ = m.Put(bg, 10)
		for swapped == 0 || taken == 0 {
			suspend.Yield()
		}
		if swapped != 10 || taken != 20 {
			t.Errorf("swapped %d, taken %d", swapped, taken)
		}
		if !m.TryPut(1) {
			t.Error("not empty")
		}
	})
}

func TestModify(t *testing.T) {
	oops := errors.New("oops")
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		m := mvar.NewFull(1)
		put, taken, read := false, 0, 0
		err := m.Modify(bg, func(v int) (int, error) {
			_ = s.Go(func() { _ = m.Put(bg, 100); put = true })
			_ = s.Go(func() { taken, _ = m.Take(bg) })
			_ = s.Go(func() { read, _ = m.Read(bg) })
			suspend.Yield()
			if put || taken != 0 || read != 0 || m.TryPut(0) {
				t.Error("another call took the value while f had it")
			}
			return v + 1, nil
		})
		if err != nil {
			t.Error(err)
		}
		for !put || taken == 0 || read == 0 {
			suspend.Yield()
		}
		if taken != 2 || read != 2 {
			t.Errorf("taken %d, read %d", taken, read)
		}
		if err := m.Modify(bg, func(v int) (int, error) { return 5, oops }); err != oops {
			t.Errorf("Modify = %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = m.Modify(bg, func(int) (int, error) { panic(oops) })
		}()
		exited := false
		_ = s.Go(func() {
			defer func() { exited = true }()
			_ = m.Modify(bg, func(int) (int, error) { runtime.Goexit(); return 0, nil })
		})
		for !exited {
			suspend.Yield()
		}
		if v, _ := m.Take(bg); v != 100 {
			t.Errorf("Take = %d after three that failed", v)
		}
		// This Take waits for its value.
		_ = s.Go(func() { _ = m.Put(bg, 3) })
		if err := m.Modify(bg, func(v int) (int, error) { return v * v, nil }); err != nil {
			t.Error(err)
		}
		if v, _ := m.Take(bg); v != 9 {
			t.Errorf("Take = %d", v)
		}
	})
}

func TestCancelOfEachOperationLeavesNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for name, do := range map[string]func(ctx context.Context, m *mvar.MVar[int]) error{
			"Take": func(ctx context.Context, m *mvar.MVar[int]) error { _, err := m.Take(ctx); return err },
			"Read": func(ctx context.Context, m *mvar.MVar[int]) error { _, err := m.Read(ctx); return err },
			"Swap": func(ctx context.Context, m *mvar.MVar[int]) error { _, err := m.Swap(ctx, 9); return err },
			"Modify": func(ctx context.Context, m *mvar.MVar[int]) error {
				return m.Modify(ctx, func(int) (int, error) { return 9, nil })
			},
			"TakeOp": func(ctx context.Context, m *mvar.MVar[int]) error { _, err := suspend.Do(ctx, m.TakeOp()); return err },
			"ReadOp": func(ctx context.Context, m *mvar.MVar[int]) error { _, err := suspend.Do(ctx, m.ReadOp()); return err },
			"SwapOp": func(ctx context.Context, m *mvar.MVar[int]) error { _, err := suspend.Do(ctx, m.SwapOp(9)); return err },
		} {
			m := mvar.New[int]()
			ctx, cancel := schedtest.WithCancel()
			var err error
			_ = s.Go(func() { err = do(ctx, m) })
			suspend.Yield()
			cancel()
			suspend.Yield()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s = %v", name, err)
			}
			if !m.TryPut(1) {
				t.Errorf("%s: not empty", name)
			}
			if v, ok := m.TryTake(); v != 1 || !ok {
				t.Errorf("%s: %d, %v after a Put: it still waits", name, v, ok)
			}
		}
	})
}

func TestOps(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			a, b := mvar.New[int](), mvar.NewFull(0)
			take, put := suspend.CaseOf(a.TakeOp()), suspend.CaseOf(b.PutOp(5))
			_ = s.Go(func() {
				_ = a.Put(bg, 1)
				if v, _ := b.Take(bg); v != 0 {
					t.Errorf("Take = %d", v)
				}
			})
			for range 2 {
				switch won, err := suspend.Select(bg, take, put); won {
				case take:
					if take.Value() != 1 {
						t.Errorf("took %d", take.Value())
					}
					take.Set(suspend.Op[int]{})
				case put:
					put.Set(suspend.Op[struct{}]{})
				default:
					t.Error(err)
				}
			}
			if v, err := suspend.Do(bg, b.ReadOp()); v != 5 || err != nil {
				t.Errorf("ReadOp = %d, %v", v, err)
			}
			if v, err := suspend.Do(bg, b.SwapOp(6)); v != 5 || err != nil {
				t.Errorf("SwapOp = %d, %v", v, err)
			}
			if v, ok := b.TryTake(); v != 6 || !ok {
				t.Errorf("TryTake = %d, %v", v, ok)
			}
		})
	})
}

// Modify checks its function before it takes the value out. Otherwise the panic would leave the MVar empty, and other calls
// waiting.
func TestModifyWithNilPanicsAtOnce(t *testing.T) {
	var empty mvar.MVar[int]
	schedtest.Panics(t, "mvar: Modify with a nil function", func() { _ = empty.Modify(bg, nil) })
}
