// Package stocktest runs unmodified Go libraries in tasks: clients and servers for databases and protocols, and Go's own locks and
// channels. Its test is a table of programs. Each program runs on an event loop with one reactor, on a pool with one worker, and on plain
// goroutines. adapters/eventloop/README.md shows the results.
//
//	cd adapters/eventloop/stocktest && go test -v .
//
// Each row of the table is a few lines of code, written as the library's documentation shows; see the test files. The functions of this
// package are recipes for clients that nearly every server uses.
package stocktest

import (
	"context"
	"database/sql"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/suspend"
)

// Get fetches url with a stock client, which uses its own connections, pool and proxies. Get suspends the task without blocking the loop.
// The loop's BlockingWidth limits the number of concurrent Gets.
func Get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	return suspend.BlockingValue(ctx, func() ([]byte, error) {
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

// QueryInt queries a database for one number with a stock *sql.DB. The pool of db may be smaller than the number of tasks. The task
// suspends until the answer arrives.
func QueryInt(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
	return suspend.BlockingValue(ctx, func() (n int, err error) {
		err = db.QueryRowContext(ctx, query, args...).Scan(&n)
		return n, err
	})
}

// A Dial is a function that opens a connection. Stock clients accept such a function as an option.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Over returns a Dial that opens connections on an event loop. Dialling, reading and writing suspend the calling task.
func Over(loop *eventloop.Loop) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := loop.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// ConnectPgx opens a single connection, without a pool. If dial opens connections on an event loop, a wait for an answer suspends only the
// task and needs no goroutine. Tasks must not use the connection concurrently. Pass the task's context to the methods of the connection.
//
// There is one exception. When a write takes longer than 15 ms, pgx reads on another goroutine, and the task waits natively for that
// goroutine. On a reactor with a negative HandOver, this wait causes a deadlock. If the server or the machine may be that slow, wrap each
// use of the connection in suspend.Blocking.
func ConnectPgx(ctx context.Context, dial Dial, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.DialFunc = pgconn.DialFunc(dial)
	return pgx.ConnectConfig(ctx, config)
}

// Pgx returns a pool of up to conns connections, which ConnectPgx opens. A task that waits for a connection suspends, whereas pgxpool would
// wait natively. The pool closes a connection that is returned during a transaction.
func Pgx(dial Dial, dsn string, conns int) *respool.Pool[*pgx.Conn] {
	return respool.New(respool.Options[*pgx.Conn]{
		Max:   conns,
		Open:  func(ctx context.Context) (*pgx.Conn, error) { return ConnectPgx(ctx, dial, dsn) },
		Close: func(c *pgx.Conn) { _ = c.Close(context.Background()) },
		Reuse: func(c *pgx.Conn) bool { return !c.IsClosed() && c.PgConn().TxStatus() == 'I' },
		Check: func(ctx context.Context, c *pgx.Conn) error { return c.Ping(ctx) },
		Fresh: time.Second,
	})
}

// NewRedis returns a Redis client. The client's pool waits natively, so each task must use its own connection (see redis.Client.Conn), and
// conns must be at least the number of such tasks.
func NewRedis(dial Dial, addr string, conns int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: conns, Dialer: dial})
}
