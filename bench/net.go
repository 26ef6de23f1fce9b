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
	"math/big"
	"net"
	"runtime"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/cloudwego/netpoll"
)

// All rounds of a side use the same server. While one side is measured, the other side's server is idle.

// A server is a function that starts a network server and returns its address. The network server runs until b ends.
type server func(b *bench, handle handler) net.Addr

type handler = func(ctx context.Context, c net.Conn)

// onLoop serves connections on an event loop with the given number of reactors.
func onLoop(reactors int) server {
	return func(b *bench, handle handler) net.Addr {
		ln := must(b.loop(eventloop.Options{Loops: reactors}).Listen("tcp", "127.0.0.1:0"))
		go ln.Serve(bg, handle)
		return ln.Addr()
	}
}

// onNet serves connections with package net and a goroutine for each connection.
func onNet(b *bench, handle handler) net.Addr {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	b.close(func() { ln.Close() })
	go func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			go func() { defer c.Close(); handle(bg, c) }()
		}
	}()
	return ln.Addr()
}

// onNetpoll echoes as the documentation of netpoll shows, by copying the input into the writer's buffer.
func onNetpoll(b *bench, _ handler) net.Addr {
	ln := must(netpoll.CreateListener("tcp", "127.0.0.1:0"))
	loop := must(netpoll.NewEventLoop(func(_ context.Context, c netpoll.Connection) error {
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
	}))
	go func() { _ = loop.Serve(ln) }()
	b.close(func() {
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_ = loop.Shutdown(ctx)
	})
	return ln.Addr()
}

// besideServer compares two servers that run the same handler, with a client in another process. The time to connect, and a warm-up of a
// fifth of the duration, are not counted.
func besideServer(what string, conns int, ours, peer server, handle handler) func(b *bench) (side, side) {
	return func(b *bench) (side, side) {
		conns := max(2, b.of(conns, conns/100))
		return b.driven(what, ours(b, handle), conns), b.driven(what, peer(b, handle), conns)
	}
}

// serveHTTP sends the same answer to every request. It expects GET requests without a body, because the client sends no other requests.
func serveHTTP(_ context.Context, c net.Conn) {
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

func echo(_ context.Context, c net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// tlsEcho uses crypto/tls unchanged, at both ends. The handshakes are not counted. A third of the work is cryptography, which goroutines
// perform on all processors, so the loop has a reactor for each processor.
func tlsEcho(b *bench) (ours, peer side) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	handle := func(ctx context.Context, c net.Conn) { echo(ctx, tls.Server(c, config)) }
	return besideServer("tls", 200, onLoop(runtime.GOMAXPROCS(0)), onNet, handle)(b)
}
