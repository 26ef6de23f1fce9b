package simulation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// A program that cancels contexts of package context is repeatable. Otherwise each cancel would start a goroutine, which ends the
// run with ErrForeign or comes too late.
func TestContextsOfPackageContext(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := uint64(1); seed <= 200; seed++ {
		var hash [2]uint64
		for i := range hash {
			r := simulation.Run(cancelling, simulation.Options{Seed: seed})
			require.NoError(t, r.Err, "seed %d", seed)
			hash[i] = r.Hash
		}
		require.Equal(t, hash[0], hash[1])
		hashes[hash[0]] = true
	}
	require.Greater(t, len(hashes), 100)
}

// cancelling waits in each way with contexts of package context, and with contexts derived from them.
func cancelling(ctx context.Context, w *simulation.World) error {
	base, cancelBase := context.WithCancelCause(ctx)
	defer cancelBase(nil)
	type key struct{}
	contexts := map[string]func() (context.Context, func()){
		"WithCancel": func() (context.Context, func()) { return context.WithCancel(base) },
		"WithValue": func() (context.Context, func()) {
			ctx, end := context.WithCancel(base)
			return context.WithValue(ctx, key{}, 1), end
		},
		"cancel.New": func() (context.Context, func()) {
			parent, end := context.WithCancel(base)
			ctx, _ := cancel.New(parent)
			return ctx, end
		},
		"cancel.WithTimeout": func() (context.Context, func()) {
			parent, end := context.WithCancel(base)
			ctx, _ := cancel.WithTimeout(parent, time.Hour)
			return ctx, end
		},
	}
	waits := map[string]func(ctx context.Context) error{
		"Sleep": func(ctx context.Context) error { return suspend.Sleep(ctx, 5*time.Minute) },
		"Take":  func(ctx context.Context) error { _, err := mvar.New[int]().Take(ctx); return err },
		"Done": func(ctx context.Context) error {
			_, err := suspend.Select(context.Background(), suspend.CaseOf(suspend.Done(ctx)), suspend.CaseOf(mvar.New[int]().TakeOp()))
			if err == nil {
				err = ctx.Err()
			}
			return err
		},
		"Then": func(ctx context.Context) error {
			var p promise.Promise[error]
			suspend.Then(ctx, mvar.New[int]().TakeOp(), w, func(_ int, err error) { _ = p.Fill(err) })
			err, _ := p.Await(context.Background())
			return err
		},
		"AfterFunc": func(ctx context.Context) error {
			var p promise.Promise[int]
			cancel.AfterFunc(ctx, func() { _ = p.Fill(1) })
			_, err := p.Await(context.Background())
			if err == nil {
				err = ctx.Err()
			}
			return err
		},
	}
	return scope.Run(context.Background(), func(context.Context, *scope.Scope) error {
		for _, kind := range []string{"WithCancel", "WithValue", "cancel.New", "cancel.WithTimeout"} {
			for _, how := range []string{"Sleep", "Take", "Done", "Then", "AfterFunc"} {
				ctx, end := contexts[kind]()
				waiting := promise.Go(context.Background(), w, func(context.Context) (error, error) {
					err := waits[how](ctx)
					w.Log("%s %s: %v", kind, how, err)
					return err, nil
				})
				_ = suspend.Sleep(context.Background(), time.Duration(w.Rand().IntN(3))*time.Minute)
				end()
				err, _ := waiting.Await(context.Background())
				if err == nil {
					return fmt.Errorf("%s %s was not cancelled", kind, how)
				}
			}
		}
		return nil
	})
}
