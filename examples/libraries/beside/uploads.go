package beside

import (
	"context"
	"errors"
	"net/http"

	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// An uploads saves up to four files in parallel and queues eight more. It rejects further files, and a third concurrent file from the same
// user.
type uploads struct {
	users *keyed.Semaphore[string]
	disk  *stage.Stage[string, struct{}]
}

func newUploads(on suspend.Spawner, save func(ctx context.Context, file string) (struct{}, error)) *uploads {
	return &uploads{keyed.NewSemaphore[string](2), stage.New("disk", save, stage.Options{Width: 4, Queue: 8, Reject: true, On: on})}
}

func (u *uploads) upload(ctx context.Context, user, file string) (status int) {
	if !u.users.TryAcquire(user) {
		return http.StatusTooManyRequests
	}
	defer u.users.Release(user)
	switch _, err := u.disk.Do(ctx, file); {
	case errors.Is(err, stage.ErrOverload):
		return http.StatusServiceUnavailable
	case err != nil:
		return http.StatusInternalServerError
	}
	return http.StatusCreated
}
