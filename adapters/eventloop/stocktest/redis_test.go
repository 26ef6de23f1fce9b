package stocktest

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var redisRows = []row{
	{name: "go-redis, 50 tasks, a pool of 10", server: "redis-server", held: deadlock, run: increments(10, maintnotifications.ModeAuto)},
	{name: "go-redis, 50 tasks, a pool of 50", server: "redis-server", held: deadlock, run: increments(50, maintnotifications.ModeAuto)},
	{name: "go-redis, 50 tasks, a pool of 50, no MaintNotifications", server: "redis-server", run: increments(50, maintnotifications.ModeDisabled)},
	{name: "go-redis, a Conn for each task: `NewRedis`", server: "redis-server", run: func(ctx context.Context, e *env) error {
		r := NewRedis(e.dial, e.server, 50)
		defer r.Close()
		return e.tasks(50, 1, func(task int) error {
			c := r.Conn()
			defer c.Close()
			return increment(ctx, c, task)
		})
	}},
	{name: "go-redis, a subscriber and a publisher", server: "redis-server", held: deadlock, run: func(ctx context.Context, e *env) error {
		r, channel := redis.NewClient(&redis.Options{Addr: e.server, Dialer: e.dial}), fmt.Sprint(os.Getpid())
		defer r.Close()
		return e.tasks(2, 1, func(task int) error {
			if task == 1 {
				for n := int64(0); n == 0; { // until there is a subscriber
					var err error
					if n, err = r.Publish(ctx, channel, "first").Result(); err != nil {
						return err
					}
				}
				for i := range 50 {
					if err := r.Publish(ctx, channel, i).Err(); err != nil {
						return err
					}
				}
				return nil
			}
			s := r.Subscribe(ctx, channel)
			defer s.Close()
			messages := s.Channel()
			for m := <-messages; m.Payload != "49"; m = <-messages {
				if m == nil {
					return fmt.Errorf("closed")
				}
			}
			return nil
		})
	}},
}

// increments runs 50 tasks on a pool, four times. Because of MaintNotifications, most new pools hold a lock during a dial.
func increments(pool int, mode maintnotifications.Mode) func(ctx context.Context, e *env) error {
	return func(ctx context.Context, e *env) error {
		for range 4 {
			r := redis.NewClient(&redis.Options{Addr: e.server, Dialer: e.dial, PoolSize: pool,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: mode}})
			defer r.Close()
			if err := e.tasks(50, 1, func(task int) error { return increment(ctx, r, task) }); err != nil {
				return err
			}
		}
		return nil
	}
}

// increment counts a key of its own up to 10.
func increment(ctx context.Context, r redis.Cmdable, task int) error {
	key := fmt.Sprint(os.Getpid(), " ", task)
	if err := r.Set(ctx, key, 0, 0).Err(); err != nil {
		return err
	}
	for i := range int64(10) {
		if n, err := r.Incr(ctx, key).Result(); err != nil || n != i+1 {
			return fmt.Errorf("%d: %w", n, err)
		}
	}
	return nil
}
