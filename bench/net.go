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

// All rounds of a side use the same server, and the server of the other side is idle during a round.

// A server answers connections until b ends.
type server func(b *bench, handle handler) net.Addr

type handler = func(ctx context.Context, c net.Conn)

// onLoop serves by an event loop with a number of reactors.
func onLoop(reactors int) server {
	return func(b *bench, handle handler) net.Addr {
		ln := must(b.loop(eventloop.Options{Loops: reactors}).Listen("tcp", "127.0.0.1:0"))
		go ln.Serve(bg, handle)
		return ln.Addr()
	}
}

// onNet serves by package net, with a goroutine for each connection.
func onNet(b *bench, handle handler) net.Addr {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	b.close(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(bg, c) }()
		}
	}()
	return ln.Addr()
}

// onNetpoll echoes in the way that its documentation shows: the input is copied into the buffer of the writer.
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

// besideServer compares two servers of the same handler, by a client in another process. Connecting, and a warm-up of a fifth of the time,
// are not counted.
func besideServer(what string, conns int, ours, peer server, handle handler) func(b *bench) (side, side) {
	return func(b *bench) (side, side) {
		conns := max(2, b.of(conns, conns/100))
		return driven(what, ours(b, handle), conns), driven(what, peer(b, handle), conns)
	}
}

// serveHTTP reads requests without a body, and gives one answer to all of them, since the client sends no other requests.
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

// tlsEcho uses crypto/tls unchanged, on both ends. The handshakes are not counted. A third of the work is cryptography, which the
// goroutines do on all processors, so the loop must have a reactor for each processor.
func tlsEcho(b *bench) (ours, peer side) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	handle := func(ctx context.Context, c net.Conn) { echo(ctx, tls.Server(c, config)) }
	return besideServer("tls", 200, onLoop(runtime.GOMAXPROCS(0)), onNet, handle)(b)
}
