package stock

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

const tasks = 20

// inTasks runs f in tasks of one reactor, and fails if another task does not go on meanwhile: each f takes 50 ms or more.
func inTasks(t *testing.T, f func(ctx context.Context, loop *eventloop.Loop, i int) error) {
	t.Helper()
	stalled := make(chan string, 1)
	loop, err := eventloop.New(eventloop.Options{StallAfter: 5 * time.Second, OnStall: func(report []byte) {
		select {
		case stalled <- string(report):
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	var all sync.WaitGroup
	turns, over := 0, make(chan struct{})
	_ = loop.Go(func() {
		defer close(over)
		for suspend.Sleep(ctx, time.Millisecond) == nil {
			turns++
		}
	})
	for i := range tasks {
		all.Add(1)
		if err := loop.Go(func() {
			defer all.Done()
			if err := f(ctx, loop, i); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
	case report := <-stalled:
		t.Fatal(report) // the loop will never end
	}
	cancel()
	<-over
	if turns < 5 {
		t.Errorf("the loop stood still: %d turns", turns)
	}
	if err := loop.Close(); err != nil {
		t.Error(err)
	}
}

func TestHTTPClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond) // it takes its time
		_, _ = fmt.Fprint(w, r.URL.Path)
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	inTasks(t, func(ctx context.Context, _ *eventloop.Loop, i int) error {
		body, err := Get(ctx, client, server.URL+"/"+strconv.Itoa(i))
		if err == nil && string(body) != "/"+strconv.Itoa(i) {
			err = fmt.Errorf("%q for %d", body, i)
		}
		return err
	})
}

func TestRedis(t *testing.T) {
	server := miniredis.RunT(t)
	inTasks(t, func(ctx context.Context, loop *eventloop.Loop, i int) error {
		r := NewRedis(loop, server.Addr(), 1)
		defer r.Close()
		c := r.Conn()
		defer c.Close()
		for range 50 {
			if err := c.Incr(ctx, "n").Err(); err != nil {
				return err
			}
			if err := suspend.Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
	if got, _ := server.Get("n"); got != strconv.Itoa(50*tasks) {
		t.Errorf("%s increments", got)
	}
}

// postgres starts a server of its own and returns where it is.
func postgres(t *testing.T) (dsn string) {
	t.Helper()
	initdb, err := exec.LookPath("initdb")
	if debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); err != nil && len(debian) > 0 {
		initdb, err = debian[len(debian)-1], nil
	}
	if err != nil {
		t.Fatal("this test needs PostgreSQL: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("", "stock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := new(syscall.SysProcAttr)
	if os.Getuid() == 0 { // it refuses to run as root
		const nobody = 65534
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "stock", "-A", "trust")
	cmd.SysProcAttr, cmd.Dir = attr, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	server.SysProcAttr, server.Dir = attr, dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	return "host=" + dir + " user=stock dbname=postgres"
}

func TestPostgres(t *testing.T) {
	dsn := postgres(t)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for start := time.Now(); db.Ping() != nil; time.Sleep(50 * time.Millisecond) { // until it is up
		if time.Since(start) > 30*time.Second {
			t.Fatal(db.Ping())
		}
	}
	const query = "select $1::int + 1 from pg_sleep(0.1)"
	t.Run("database/sql", func(t *testing.T) {
		db.SetMaxOpenConns(4)
		inTasks(t, func(ctx context.Context, _ *eventloop.Loop, i int) error {
			n, err := QueryInt(ctx, db, query, i)
			if err == nil && n != i+1 {
				err = fmt.Errorf("%d", n)
			}
			return err
		})
	})
	t.Run("pgx", func(t *testing.T) {
		inTasks(t, func(ctx context.Context, loop *eventloop.Loop, i int) error {
			c, err := ConnectPgx(ctx, loop, dsn)
			if err != nil {
				return err
			}
			defer c.Close(ctx)
			var n int
			if err := c.QueryRow(ctx, query, i).Scan(&n); err != nil || n != i+1 {
				return fmt.Errorf("%d, %w", n, err)
			}
			return nil
		})
	})
}
