package stocktest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/braidgo/braid/simulation"
)

// postgres answers the query select incr('key').
func (c *counts) postgres(conn net.Conn) {
	b := pgproto3.NewBackend(conn, conn)
	if m, err := b.ReceiveStartupMessage(); err != nil {
		return
	} else if _, ok := m.(*pgproto3.StartupMessage); !ok { // a request to cancel a query
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	b.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return
		}
		m, err := b.Receive()
		q, ok := m.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		if parts := strings.Split(q.String, "'"); len(parts) == 3 {
			n := c.incr(parts[1])
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("incr"), DataTypeOID: 20, DataTypeSize: 8, TypeModifier: -1}}})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(strconv.Itoa(n))}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		} else {
			b.Send(&pgproto3.EmptyQueryResponse{})
		}
	}
}

// queries runs 12 goroutines with a pool of four connections.
func queries(ctx context.Context, w *world) error {
	const goroutines, calls = 12, 10
	w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Reset: 0.01})
	data := &counts{of: map[string]int{}}
	serve(w, 5432, data.postgres)
	errs := make(chan error, 1)
	w.Node("client").Start(func(ctx context.Context, h *simulation.Host) {
		conf, err := pgxpool.ParseConfig("host=server user=u dbname=d sslmode=disable pool_max_conns=4")
		if err != nil {
			errs <- err
			return
		}
		conf.ConnConfig.DialFunc = h.Dial
		conf.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
		conf.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		pool, err := pgxpool.NewWithConfig(ctx, conf)
		if err != nil {
			errs <- err
			return
		}
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() {
				for last := 0; last < calls; {
					short, cancel := context.WithTimeout(ctx, time.Second)
					n := 0
					err := pool.QueryRow(short, "select incr($1)", fmt.Sprint("k", i)).Scan(&n)
					cancel()
					if err != nil {
						w.Log("%d: %v", i, err)
						continue
					}
					last = n
				}
			})
		}
		wg.Wait()
		pool.Close()
		errs <- nil
	})
	if err := <-errs; err != nil {
		return err
	}
	return data.atLeast(goroutines, calls)
}

func TestPgx(t *testing.T) { apart(t, 5, queries) }
