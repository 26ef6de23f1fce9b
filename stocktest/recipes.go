// Package stocktest runs stock Go code in tasks: clients and servers of databases and protocols, and the locks and channels of
// Go itself. Its test is a table. Each row runs in tasks of one reactor of an event loop, in tasks of a pool of one worker, and on
// goroutines. STOCK.md has the results.
//
//	cd stocktest && go test -v .
//
// A row is some lines of code as its authors document it; see the files of the tests. The functions of the package itself are
// recipes for the clients that nearly every server uses.
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

// Get fetches url with a stock client, through the client's own connections, pool and proxies. The task suspends, but its loop goes on. The
// BlockingWidth of the loop limits the number of Gets that run at once.
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

// QueryInt queries a database for one number, by a stock *sql.DB, whose pool may be smaller than the number of tasks. The task suspends
// until the answer is there.
func QueryInt(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
	return suspend.Call(ctx, func() (n int, err error) {
		err = db.QueryRowContext(ctx, query, args...).Scan(&n)
		return n, err
	})
}

// A Dial opens a connection. Stock clients take such a function.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Over returns the Dial of a loop. A task that waits for a connection, or reads or writes it, suspends.
func Over(loop *eventloop.Loop) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := loop.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// ConnectPgx opens a bare connection. Over a loop a task that waits for an answer blocks no other task, and no goroutine waits for it. Only
// one task may use the connection at once. The methods of the connection take the contexts of the task.
//
// There is one exception. When a write has lasted for 15 ms, pgx reads on another goroutine, and the task waits for that goroutine
// natively. On a reactor with a negative HandOver this wait is a deadlock. Where the server or the machine may be that busy, each use of
// the connection must go through suspend.Call.
func ConnectPgx(ctx context.Context, dial Dial, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.DialFunc = pgconn.DialFunc(dial)
	return pgx.ConnectConfig(ctx, config)
}

// Pgx returns a pool of up to conns bare connections. A task that waits for a connection suspends, in place of the native wait of pgxpool.
// The pool closes a returned connection that is in a transaction.
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

// NewRedis returns a client. Its pool waits natively, so each task must use a separate connection, by Conn, and conns must be at least the
// number of such tasks.
func NewRedis(dial Dial, addr string, conns int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: conns, Dialer: dial})
}
