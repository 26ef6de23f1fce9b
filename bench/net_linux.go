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
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/cloudwego/netpoll"
)

// The clients are in a process of their own, on the same machine, so their processor time counts against both sides.
// Connecting, and a warm-up of a fifth, are not counted (wrk counts them, where it is the client). All rounds of a side
// meet the same server, and the server of the other side is idle meanwhile. The loop has one reactor, unless it is said.
var netRows = []row{
	// A request is an operation: 1000 connections ask again as soon as they are answered. The client is wrk with one
	// thread, or where that is not installed one thread on epoll, drive_linux.go.
	{id: "http-loop", against: "the same on net, goroutines", unit: "ns", must: 0.95, aim: 0.70, rounds: 6, open: func(m mode) (*sides, error) {
		s, err := servers("http", 1, m.of(1000, 10), serveHTTP, stdServer)
		if err == nil {
			s.note = "client: a thread on epoll"
			if wrk() != "" {
				s.note = "client: wrk"
			}
		}
		return s, err
	}},
	// 64 bytes there and back on one of 200 connections are an operation: crypto/tls as it is on both ends, on either
	// server, and on goroutines in the client. The handshakes are not counted. A third of the work is cryptography, which
	// the goroutines do on all processors, so the loop has a reactor for each.
	{id: "tls-loop", against: "the same on net, goroutines", unit: "ns", must: 1.10, aim: 0.90, rounds: 12, open: func(m mode) (*sides, error) {
		config, err := selfSigned()
		if err != nil {
			return nil, err
		}
		return servers("tls", runtime.GOMAXPROCS(0), m.of(200, 2), func(c net.Conn) { echo(tls.Server(c, config)) }, stdServer)
	}},
	// The same without TLS, and with a client of one thread on epoll.
	{id: "echo/net", against: "the same on net, goroutines", unit: "ns", rounds: 3, open: func(m mode) (*sides, error) {
		return servers("echo", 1, m.of(200, 2), echo, stdServer)
	}},
	{id: "echo/netpoll", against: "cloudwego/netpoll", unit: "ns", rounds: 3, open: func(m mode) (*sides, error) {
		return servers("echo", 1, m.of(200, 2), echo, netpollServer)
	}},
	// 4 KB through one of 128 busy pipes are an operation, a task at each end. 65,536 other tasks wait to read from
	// pipes of their own, or fewer where the limit of descriptors is too low: then the id says how many. The peer is the
	// same on a loop without those. Opening the pipes is not counted.
	{id: idleID, against: "the same with 0 idle", unit: "ns", must: 1.05, aim: 1.0, open: func(m mode) (*sides, error) {
		ours, err := newPipes()
		if err != nil {
			return nil, err
		}
		peer, err := newPipes()
		if err != nil {
			return nil, errors.Join(err, ours.loop.Close())
		}
		s := &sides{ours: timed(ours.transfer), peer: timed(peer.transfer),
			close: func() { must(0, ours.loop.Close()); must(0, peer.loop.Close()) }}
		if err := ours.idle(m.of(idlePairs, 10)); err != nil {
			s.close()
			return nil, err
		}
		return s, nil
	}},
}

const wantIdle = 65_536

// idlePairs is how many idle pipes there may be.
var idlePairs, idleID = func() (int, string) {
	limit := allowDescriptors(2*(wantIdle+2*busyPipes) + 500)
	if limit == 0 {
		return wantIdle, "idle-pipes"
	}
	n := max(0, (limit-4*busyPipes-500)/2/1000*1000)
	return n, fmt.Sprintf("idle-pipes/%d", n)
}()

// servers runs handle on a loop of this number of reactors. peer runs it too, or its equivalent.
func servers(what string, loops, conns int, handle func(net.Conn), peer func(func(net.Conn)) (net.Addr, func(), error)) (*sides, error) {
	loop, err := eventloop.New(eventloop.Options{Loops: loops})
	if err != nil {
		return nil, err
	}
	ln, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	go ln.Serve(context.Background(), func(_ context.Context, c net.Conn) { handle(c) })
	addr, stop, err := peer(handle)
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	driven := func(addr net.Addr) side {
		return func(d time.Duration) (float64, error) {
			return driveElsewhere(what, addr.String(), conns, min(10*d, time.Second))
		}
	}
	return &sides{ours: driven(ln.Addr()), peer: driven(addr), close: func() { stop(); loop.Close() }}, nil
}

// stdServer is one of net, with a goroutine for each connection.
func stdServer(handle func(net.Conn)) (net.Addr, func(), error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(c) }()
		}
	}()
	return ln.Addr(), func() { ln.Close() }, nil
}

// netpollServer echoes in the way that its documentation shows: the input is copied into the buffer of the writer.
func netpollServer(func(net.Conn)) (net.Addr, func(), error) {
	ln, err := netpoll.CreateListener("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	loop, err := netpoll.NewEventLoop(func(_ context.Context, c netpoll.Connection) error {
		in, out := c.Reader(), c.Writer()
		data, err := in.Next(in.Len())
		if err != nil {
			return err
		}
		answer, err := out.Malloc(len(data))
		if err != nil {
			return err
		}
		copy(answer, data)
		return errors.Join(in.Release(), out.Flush())
	})
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = loop.Serve(ln) }()
	return ln.Addr(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = loop.Shutdown(ctx)
	}, nil
}

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

// pipes are 128 busy ones, and tasks that wait to read from others, on one loop.
type pipes struct {
	loop *eventloop.Loop
	r, w [busyPipes]*eventloop.Conn
}

// newPipes makes the busy ones. They come before the idle ones of all sides: the system may give small buffers to the
// pipes of a user that has many.
func newPipes() (*pipes, error) {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return nil, err
	}
	p := &pipes{loop: loop}
	for i := range busyPipes {
		if p.r[i], p.w[i], err = loop.Pipe(); err != nil {
			return nil, errors.Join(err, loop.Close())
		}
	}
	return p, nil
}

func (p *pipes) idle(n int) error {
	for range n {
		r, w, err := p.loop.Pipe()
		if err != nil {
			return err
		}
		must(0, p.loop.Go(func() {
			_, _ = r.Read(make([]byte, 1)) // until the loop closes
			w.Close()
		}))
	}
	waiting := make(chan struct{})
	must(0, p.loop.Go(func() { close(waiting) })) // after all of them
	<-waiting
	return nil
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
