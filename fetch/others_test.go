package fetch_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
)

// A Close cancels a batch of a Run whose body has returned, and which waits for the batch.
func TestCloseReachesABatchOfARunThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := fetch.New("slow", func(ctx context.Context, _ *fetch.Batch[int, int]) error { <-ctx.Done(); return ctx.Err() }, fetch.SourceOptions{})
		ctx, s := fetch.Open(context.Background(), fetch.Options{})
		ended := make(chan error, 2)
		get, cancel := context.WithCancel(context.Background())
		go func() {
			ended <- fetch.Run(ctx, func(ctx context.Context) error {
				ctx, stop := context.WithCancel(ctx)
				defer context.AfterFunc(get, stop)()
				_, err := slow.Get(ctx, 1)
				return err
			}, fetch.Options{})
		}()
		synctest.Wait()
		go func() { _, err := slow.Get(ctx, 1); ended <- err }() // joins the request
		synctest.Wait()
		cancel()
		synctest.Wait() // the Run waits for its batch
		s.Close()
		require.Error(t, <-ended)
		require.Error(t, <-ended)
	})
}

// If a source has a MaxOpen, a caller runs its own batch, but not the next one, which belongs to another Get. The caller returns
// while the next load runs, and the Goexit of that load does not end it. Without Immediate, the same holds for callers in other Runs.
func TestACallerRunsNoLoadOfOthers(t *testing.T) {
	for _, immediate := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			src := fetch.New("s", func(_ context.Context, b *fetch.Batch[int, int]) error {
				time.Sleep(time.Second)
				if b.Keys()[0] == 2 {
					time.Sleep(time.Second)
					runtime.Goexit()
				}
				b.Set(1, 1)
				return nil
			}, fetch.SourceOptions{Immediate: immediate, Inline: true, MaxOpen: 1})
			ctx, s := fetch.Open(context.Background(), fetch.Options{})
			start := time.Now()
			took := make(chan time.Duration, 1)
			get := func(k int) {
				_ = fetch.Run(ctx, func(ctx context.Context) error { _, err := src.Get(ctx, k); return err }, fetch.Options{})
				if k == 1 {
					took <- time.Since(start)
				}
			}
			go get(1)
			synctest.Wait()
			go get(2)
			time.Sleep(time.Minute)
			require.Equal(t, time.Second, <-took)
			s.Close()
		})
	}
}
