package stocktest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// redisServer starts a server on a unix socket and returns its address, or "" if the machine has no redis-server.
func redisServer(t *testing.T) (address string) {
	t.Helper()
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return ""
	}
	dir := t.TempDir()
	address = filepath.Join(dir, "redis")
	start(t, syscall.SIGTERM, exec.Command(server, "--port", "0", "--unixsocket", address, "--save", "", "--dir", dir))
	wait(t, func() error { _, err := os.Stat(address); return err })
	return address
}

// postgresServer starts a server on a unix socket and returns its data source name, or "" if the machine has no PostgreSQL.
func postgresServer(t *testing.T) (dsn string) {
	t.Helper()
	initdb, err := exec.LookPath("initdb")
	if debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); err != nil && len(debian) > 0 {
		initdb, err = debian[len(debian)-1], nil
	}
	if err != nil {
		return ""
	}
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "stock") // a short path, because a socket's name is limited; another user has access to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := new(syscall.SysProcAttr)
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		const nobody = 65534
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "stock", "-A", "trust", "--no-sync")
	cmd.SysProcAttr, cmd.Dir = attr, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	server.SysProcAttr, server.Dir = attr, dir
	start(t, syscall.SIGINT, server)
	dsn = "host=" + dir + " user=stock dbname=postgres"
	wait(t, func() error {
		c, err := pgx.Connect(context.Background(), dsn)
		if err == nil {
			err = c.Close(context.Background())
		}
		return err
	})
	return dsn
}

// start runs a server. At the end of the test, it sends stop to the server.
func start(t *testing.T, stop syscall.Signal, server *exec.Cmd) {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(stop)
		_ = server.Wait()
	})
}

func wait(t *testing.T, up func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := up()
		if err == nil {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatal(err)
		}
	}
}
