package httppark_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/braidgo/braid/adapters/httppark"
)

// A client keeps its connection. While the client pauses, the connection has no goroutine.
func Example() {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	srv := &httppark.Server{Server: &http.Server{Handler: hello}, ParkAfter: time.Millisecond}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error)
	go func() { served <- srv.Serve(ln) }() // or srv.ListenAndServe, with an address in the http.Server

	for range 2 {
		r, err := http.Get("http://" + ln.Addr().String())
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		for srv.Parked() == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("parked:", srv.Parked())
	}
	fmt.Println(srv.Shutdown(context.Background()), <-served)
	// Output:
	// parked: 1
	// parked: 1
	// <nil> http: Server closed
}

// HTTP/1.1 connections over TLS are parked, too.
func ExampleServer_ListenAndServeTLS() {
	srv := &httppark.Server{Server: &http.Server{Addr: "127.0.0.1:0", IdleTimeout: time.Hour}}
	srv.SetKeepAlivesEnabled(true) // the default
	fmt.Println(srv.ListenAndServeTLS("no-cert.pem", "no-key.pem"))
	srv.Addr = "no address"
	fmt.Println(srv.ListenAndServe())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(srv.ServeTLS(ln, "no-cert.pem", "no-key.pem"))
	// Output:
	// open no-cert.pem: no such file or directory
	// listen tcp: address no address: missing port in address
	// open no-cert.pem: no such file or directory
}
