package stocktest

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/braidgo/braid/suspend"
)

const query = "select $1::int + 1"

var postgresRows = []row{
	{name: "pgx, a Conn for each task: `ConnectPgx`", server: "postgres", held: either, run: func(ctx context.Context, e *env) error {
		return bare(ctx, e, e.dial)
	}},
	{name: "pgx, a Conn for each task, slow writes", server: "postgres", held: deadlock, run: func(ctx context.Context, e *env) error {
		return bare(ctx, e, func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := e.dial(ctx, network, address)
			return slowConn{c}, err
		})
	}},
	{name: "pgxpool, 20 tasks, 4 connections", server: "postgres", held: deadlock, run: func(ctx context.Context, e *env) error {
		config, err := pgxpool.ParseConfig(e.server)
		if err != nil {
			return err
		}
		config.MaxConns, config.ConnConfig.DialFunc = 4, pgconn.DialFunc(e.dial)
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return err
		}
		defer pool.Close()
		return e.tasks(20, 10, func(task int) error {
			return answer(task, func(n *int) error { return pool.QueryRow(ctx, query, task).Scan(n) })
		})
	}},
	{name: "pgx, 20 tasks, 4 connections of a respool: `Pgx`", server: "postgres", held: either, run: func(ctx context.Context, e *env) error {
		pool := Pgx(e.dial, e.server, 4)
		defer pool.Shutdown(context.Background())
		return e.tasks(20, 10, func(task int) error {
			l, err := pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer l.Release()
			return answer(task, func(n *int) error { return l.Value.QueryRow(ctx, query, task).Scan(n) })
		})
	}},
	{name: "database/sql, 50 tasks, 4 connections", server: "postgres", held: deadlock, run: func(ctx context.Context, e *env) error {
		return inDB(e, 4, func(db *sql.DB) error {
			return e.tasks(50, 5, func(task int) error {
				return answer(task, func(n *int) error { return db.QueryRowContext(ctx, query, task).Scan(n) })
			})
		})
	}},
	{name: "database/sql, two tasks, 1 connection, a transaction across a wait", server: "postgres", held: deadlock,
		run: func(ctx context.Context, e *env) error {
			return inDB(e, 1, func(db *sql.DB) error {
				return e.tasks(2, 10, func(task int) error {
					tx, err := db.BeginTx(ctx, nil)
					if err != nil {
						return err
					}
					defer tx.Rollback()
					if err := answer(task, func(n *int) error { return tx.QueryRowContext(ctx, query, task).Scan(n) }); err != nil {
						return err
					}
					if err := suspend.Sleep(ctx, time.Millisecond); err != nil {
						return err
					}
					return tx.Commit()
				})
			})
		}},
	{name: "database/sql, 50 tasks, 4 connections, in Blocking: `QueryInt`", server: "postgres", run: func(ctx context.Context, e *env) error {
		db, err := sql.Open("pgx", e.server)
		if err != nil {
			return err
		}
		defer db.Close()
		db.SetMaxOpenConns(4)
		return e.tasks(50, 5, func(task int) error {
			return answer(task, func(n *int) (err error) { *n, err = QueryInt(ctx, db, query, task); return err })
		})
	}},
}

// bare runs 10 tasks, each with a connection of its own.
func bare(ctx context.Context, e *env, dial Dial) error {
	return e.tasks(10, 1, func(task int) error {
		c, err := ConnectPgx(ctx, dial, e.server)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		for range 10 {
			if err := answer(task, func(n *int) error { return c.QueryRow(ctx, query, task).Scan(n) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// A slowConn has a peer that is slow to read.
type slowConn struct{ net.Conn }

func (c slowConn) Write(p []byte) (int, error) {
	if err := suspend.Sleep(context.Background(), 20*time.Millisecond); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// inDB opens a database whose driver dials like e.
func inDB(e *env, connections int, f func(db *sql.DB) error) error {
	config, err := pgx.ParseConfig(e.server)
	if err != nil {
		return err
	}
	config.DialFunc = pgconn.DialFunc(e.dial)
	db := stdlib.OpenDB(*config)
	defer db.Close()
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return f(db)
}

func answer(task int, ask func(n *int) error) error {
	var n int
	if err := ask(&n); err != nil || n != task+1 {
		return fmt.Errorf("%d: %w", n, err)
	}
	return nil
}
