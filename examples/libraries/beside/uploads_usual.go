package beside

import (
	"context"
	"net/http"
	"sync"
)

type uploadsUsual struct {
	mu     sync.Mutex
	users  map[string]int
	places chan struct{}
	four   chan struct{}
	save   func(ctx context.Context, file string) (struct{}, error)
}

func newUploadsUsual(save func(ctx context.Context, file string) (struct{}, error)) *uploadsUsual {
	return &uploadsUsual{users: map[string]int{}, places: make(chan struct{}, 12), four: make(chan struct{}, 4), save: save}
}

func (u *uploadsUsual) enter(user string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users[user] == 2 {
		return false
	}
	u.users[user]++
	return true
}

func (u *uploadsUsual) leave(user string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users[user]--; u.users[user] == 0 {
		delete(u.users, user)
	}
}

func (u *uploadsUsual) upload(ctx context.Context, user, file string) (status int) {
	if !u.enter(user) {
		return http.StatusTooManyRequests
	}
	defer u.leave(user)
	select {
	case u.places <- struct{}{}:
		defer func() { <-u.places }()
	default:
		return http.StatusServiceUnavailable
	}
	select {
	case u.four <- struct{}{}:
		defer func() { <-u.four }()
	case <-ctx.Done():
		return http.StatusInternalServerError
	}
	if _, err := u.save(ctx, file); err != nil {
		return http.StatusInternalServerError
	}
	return http.StatusCreated
}
