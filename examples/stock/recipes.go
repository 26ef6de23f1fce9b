// Package stock has one recipe for each of the clients that nearly every server uses, in tasks of an event loop: net/http,
// database/sql, pgx and go-redis. STOCK.md says why. The rule: a bare connection works in a task, over the dialer of the
// loop; a client with a pool waits for its own goroutines and locks, so it goes through suspend.Call.
//
//	cd examples/stock && go test -v .
package stock

import (
	"context"
	"database/sql"
	"io"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// Get fetches url with a stock client, whose connections, pool and proxies are its own. The loop goes on meanwhile. The
// BlockingWidth of the loop limits the number of Gets that run at a time.
func Get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	return suspend.Call(ctx, func() ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		return io.ReadAll(response.Body)
	})
}

// QueryInt asks a database for one number, by a stock *sql.DB, whose pool may be smaller than the number of tasks.
func QueryInt(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
	return suspend.Call(ctx, func() (n int, err error) {
		err = db.QueryRowContext(ctx, query, args...).Scan(&n)
		return n, err
	})
}

// ConnectPgx opens a bare connection over the loop. A task that waits for an answer holds up nobody, and no goroutine waits
// for it. One task at a time uses the connection. Its methods take the contexts of the task.
func ConnectPgx(ctx context.Context, loop *eventloop.Loop, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.DialFunc = dialer(loop)
	return pgx.ConnectConfig(ctx, config)
}

// NewRedis returns a client over the loop. Its pool waits natively, so each task uses a connection of its own, by Conn, and
// conns is at least the number of such tasks.
func NewRedis(loop *eventloop.Loop, addr string, conns int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: conns, Dialer: dialer(loop)})
}

// dialer is loop.Dial as stock code wants it.
func dialer(loop *eventloop.Loop) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := loop.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}
