package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
)

// The clients are in a process of their own, on the same machine, so their processor time counts against both sides.
// Connecting, and a warm-up of a fifth, are not counted. All rounds of a side meet the same server, and the server of
// the other side is idle meanwhile. The loop has one reactor.
var netRows = []row{
	// A request is an operation: 1000 connections ask again as soon as they are answered. Instead of wrk the client is one
	// thread on epoll, drive_linux.go.
	{id: "http-loop", unit: "ns", must: 0.95, aim: 0.70, rounds: 7, open: func() (*sides, error) {
		return servers("http", 1000, serveHTTP)
	}},
	// 64 bytes there and back on one of 200 connections are an operation: crypto/tls as it is on both ends, on either
	// server, and on goroutines in the client. The handshakes are not counted.
	{id: "tls-loop", unit: "ns", must: 1.05, aim: 0.90, rounds: 7, open: func() (*sides, error) {
		config, err := selfSigned()
		if err != nil {
			return nil, err
		}
		return servers("tls", 200, func(c net.Conn) { echo(tls.Server(c, config)) })
	}},
	idlePipes(),
}

// idlePipes: 4 KB through one of 128 busy pipes are an operation, a task at each end. 65,536 other tasks wait to read from
// pipes of their own, or fewer where the limit of descriptors is too low: then the id says how many. The peer is the
// same on a loop without those. Opening the pipes is not counted.
func idlePipes() row {
	r := row{id: "idle-pipes", unit: "ns", must: 1.05, aim: 1.0}
	idle := 65_536
	if limit := allowDescriptors(2*(idle+2*busyPipes) + 500); limit > 0 {
		idle = (limit - 500) / 2 / 1000 * 1000
		r.id = fmt.Sprintf("idle-pipes/%d", idle)
	}
	r.open = func() (*sides, error) {
		ours, err := newPipes(idle)
		if err != nil {
			return nil, err
		}
		peer, err := newPipes(0)
		if err != nil {
			return nil, errors.Join(err, ours.loop.Close())
		}
		return &sides{ours: timed(ours.transfer), peer: timed(peer.transfer),
			close: func() { must(0, ours.loop.Close()); must(0, peer.loop.Close()) }}, nil
	}
	return r
}

// servers runs handle on a loop, and on net with a goroutine for each connection.
func servers(what string, conns int, handle func(net.Conn)) (*sides, error) {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return nil, err
	}
	ln, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	go ln.Serve(context.Background(), func(_ context.Context, c net.Conn) { handle(c) })
	std, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	go func() {
		for {
			c, err := std.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(c) }()
		}
	}()
	driven := func(addr net.Addr) func(time.Duration) (float64, error) {
		return func(d time.Duration) (float64, error) { return driveElsewhere(what, addr, conns, 10*d) }
	}
	return &sides{ours: driven(ln.Addr()), peer: driven(std.Addr()),
		close: func() { std.Close(); loop.Close() }}, nil
}

// driveElsewhere has another process drive the server at addr for d, and returns the nanoseconds per operation.
func driveElsewhere(what string, addr net.Addr, conns int, d time.Duration) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, driveArg, what, addr.String(), strconv.Itoa(conns), d.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("the client: %w", err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

const response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n"

// serveHTTP knows no more than it has to: requests without a body, and one answer.
func serveHTTP(c net.Conn) {
	buf, n := make([]byte, 4096), 0
	answer := []byte(response)
	for {
		m, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		n += m
		for {
			end := bytes.Index(buf[:n], []byte("\r\n\r\n"))
			if end < 0 {
				break
			}
			if !bytes.HasPrefix(buf, []byte("GET ")) {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
			n = copy(buf, buf[end+4:n])
		}
	}
}

func echo(c net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}, nil
}

const busyPipes = 128

type pipes struct {
	loop *eventloop.Loop
	r, w [busyPipes]*eventloop.Conn
}

func newPipes(idle int) (*pipes, error) {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return nil, err
	}
	p := &pipes{loop: loop}
	for i := range busyPipes + idle {
		r, w, err := loop.Pipe()
		if err != nil {
			return nil, errors.Join(err, loop.Close())
		}
		if i < busyPipes {
			p.r[i], p.w[i] = r, w
			continue
		}
		must(0, loop.Go(func() {
			_, _ = r.Read(make([]byte, 1)) // until the loop closes
			w.Close()
		}))
	}
	waiting := make(chan struct{})
	must(0, loop.Go(func() { close(waiting) })) // after all of them
	<-waiting
	return p, nil
}

// allowDescriptors raises the limit to n. Where that is not allowed it returns the limit, otherwise 0.
func allowDescriptors(n int) (limit int) {
	var l syscall.Rlimit
	must(0, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	if l.Cur >= uint64(n) {
		return 0
	}
	was := l
	l.Cur, l.Max = uint64(n), max(uint64(n), l.Max)
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		return 0
	}
	was.Cur = was.Max
	must(0, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
	return int(was.Cur)
}

// transfer sends n messages, all pipes together.
func (p *pipes) transfer(n int) {
	var all sync.WaitGroup
	for i := range busyPipes {
		mine := (n + i) / busyPipes
		all.Add(2)
		must(0, p.loop.Go(func() {
			defer all.Done()
			buf := make([]byte, 4096)
			for range mine {
				must(p.w[i].Write(buf))
			}
		}))
		must(0, p.loop.Go(func() {
			defer all.Done()
			buf := make([]byte, 4096)
			for range mine {
				must(io.ReadFull(p.r[i], buf))
			}
		}))
	}
	all.Wait()
}
