// Command idle opens connections that send two requests each and then wait, and prints how many bytes a connection takes in the
// server: with package net/http and with adapters/httppark, both also over TLS, and on an event loop, with a task for each connection
// and parked.
//
//	go run ./examples/idle
//	go run ./examples/idle -n 20000
//
// The bytes are those of the heap, of the stacks, and of the runtime's own structures. The memory of the kernel comes on top, and
// is the same for all.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/httppark"
	"github.com/braidgo/braid/internal/testrig/weigh"
)

// servers start a server on a free port.
var servers = []struct {
	name  string
	start func() (net.Addr, error)
}{
	{"net/http", onNet((&http.Server{Handler: hello}).Serve)},
	{"httppark", onNet(func(ln net.Listener) error { return httppark.Serve(ln, &http.Server{Handler: hello}) })},
	{"net/http" + overTLS, onNet(func(ln net.Listener) error {
		return (&http.Server{Handler: hello}).Serve(tls.NewListener(ln, certified()))
	})},
	{"httppark" + overTLS, onNet(func(ln net.Listener) error {
		return httppark.Serve(tls.NewListener(ln, certified()), &http.Server{Handler: hello})
	})},
	{"eventloop, Serve", onLoop(func(ln *eventloop.Listener) error { return ln.Serve(context.Background(), answerAll) })},
	{"eventloop, ServeParked", onLoop(func(ln *eventloop.Listener) error { return ln.ServeParked(context.Background(), answer) })},
}

const (
	free    = "127.0.0.1:0"
	overTLS = ", TLS"
)

// certified returns a configuration with a certificate that nobody has signed.
func certified() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal("idle: ", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		log.Fatal("idle: ", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func onNet(serve func(net.Listener) error) func() (net.Addr, error) {
	return func() (net.Addr, error) {
		ln, err := net.Listen("tcp", free)
		if err != nil {
			return nil, err
		}
		go func() { log.Fatal(serve(ln)) }()
		return ln.Addr(), nil
	}
}

func onLoop(serve func(*eventloop.Listener) error) func() (net.Addr, error) {
	return func() (net.Addr, error) {
		loop, err := eventloop.New(eventloop.Options{})
		if err != nil {
			return nil, err
		}
		ln, err := loop.Listen("tcp", free)
		if err != nil {
			return nil, err
		}
		go func() { log.Fatal(serve(ln)) }()
		return ln.Addr(), nil
	}
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

// answer answers one request. The clients of this program send a request at once, so that one Read has all of it.
func answer(_ context.Context, c net.Conn) error {
	var request [256]byte
	_, err := c.Read(request[:])
	if err == nil {
		_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
	}
	return err
}

func answerAll(ctx context.Context, c net.Conn) {
	for answer(ctx, c) == nil {
	}
}

// serve starts a server and prints its address. For each line of its input it prints the bytes that the server has taken since.
func serve(i int) error {
	addr, err := servers[i].start()
	if err != nil {
		return err
	}
	weigh.Serve(addr.String())
	return nil
}

// measure runs a server in another process, and returns the bytes for each of n connections.
func measure(server, n int) (each float64, err error) {
	return weigh.Each(n, weigh.Client{
		Dial:  func(addr string) (net.Conn, error) { return dial(servers[server].name, addr) },
		Use:   request,
		Pause: 2 * time.Second, // a connection is parked after 100 ms
	}, "-serve", strconv.Itoa(server))
}

// request sends a request and reads the answer.
func request(c net.Conn) error {
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: idle\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReaderSize(c, 256), nil)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return nil
}

func dial(name, addr string) (net.Conn, error) {
	if strings.HasSuffix(name, overTLS) {
		return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	}
	return net.Dial("tcp", addr)
}

func main() {
	n := flag.Int("n", 5000, "how many `connections` wait")
	server := flag.Int("serve", -1, "serve as the `server` with this number; used by the measuring process")
	flag.Parse()
	if *server >= 0 {
		if err := serve(*server); err != nil {
			log.Fatal("idle: ", err)
		}
		return
	}
	for i, s := range servers {
		each, err := measure(i, *n)
		if err != nil {
			log.Fatal("idle: ", err)
		}
		fmt.Printf("%-24s%7.0f bytes for each connection that waits\n", s.name, each)
	}
}
