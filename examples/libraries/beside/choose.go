package beside

import (
	"context"
	"time"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// choose waits up to a second for the answer or for the lock, whichever comes first.
func choose(ctx context.Context, answer *promise.Promise[string], mu *mutex.Mutex) (string, error) {
	ready, free, late := suspend.CaseOf(answer.AwaitOp()), suspend.CaseOf(mu.LockOp()), suspend.CaseOf(suspend.After(time.Second))
	switch won, err := suspend.Select(ctx, ready, free, late); won {
	case ready:
		return ready.Result()
	case free:
		defer mu.Unlock()
		return "locked", nil
	case late:
		return "late", nil
	default:
		return "", err
	}
}
