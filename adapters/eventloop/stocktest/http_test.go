package stocktest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

var httpRows = []row{
	{name: "http.Client, 50 tasks, keep-alive", held: deadlock, pool: slow, run: func(ctx context.Context, e *env) error {
		return fetch(e, &http.Transport{DialContext: e.dial, MaxIdleConnsPerHost: 50}, func(client *http.Client, url string) error {
			return get(ctx, client, url)
		})
	}},
	{name: "http.Client, 50 tasks, stock dialer", held: slow, pool: slow, run: func(ctx context.Context, e *env) error {
		return fetch(e, &http.Transport{MaxIdleConnsPerHost: 50}, func(client *http.Client, url string) error {
			return get(ctx, client, url)
		})
	}},
	{name: "http.Client, stock dialer, in Blocking: `Get`", run: func(ctx context.Context, e *env) error {
		return fetch(e, &http.Transport{MaxIdleConnsPerHost: 50}, func(client *http.Client, url string) error {
			return is(Get(ctx, client, url))
		})
	}},
	{name: "http.Server, Serve with a listener", run: func(ctx context.Context, e *env) error {
		ln, err := e.listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.HandlerFunc(hello)}
		defer server.Close()
		if err := e.spawn(func() { _ = server.Serve(ln) }); err != nil {
			return err
		}
		return visit(ctx, e, ln.Addr().String())
	}},
	{name: "http.ReadRequest and Response.Write", pool: slow, run: func(ctx context.Context, e *env) error {
		address, err := e.serve(func(c net.Conn) {
			for in := bufio.NewReader(c); ; {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				body := io.NopCloser(strings.NewReader(greeting))
				if (&http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: body, ContentLength: int64(len(greeting))}).Write(c) != nil {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		return visit(ctx, e, address)
	}},
	{name: "fasthttp, ServeConn in tasks", pool: slow, run: func(ctx context.Context, e *env) error {
		server := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) { c.WriteString(greeting) }}
		address, err := e.serve(func(c net.Conn) { _ = server.ServeConn(c) })
		if err != nil {
			return err
		}
		return visit(ctx, e, address)
	}},
	{name: "fasthttp client, 50 tasks, 10 connections", held: deadlock, pool: slow, run: func(ctx context.Context, e *env) error {
		server := httptest.NewServer(http.HandlerFunc(hello))
		defer server.Close()
		client := &fasthttp.Client{MaxConnsPerHost: 10, MaxConnWaitTimeout: limit,
			Dial: func(address string) (net.Conn, error) { return e.dial(ctx, "tcp", address) }}
		defer client.CloseIdleConnections()
		return e.tasks(50, 5, func(int) error {
			_, body, err := client.Get(nil, server.URL)
			return is(body, err)
		})
	}},
}

const greeting = "hello"

func hello(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(2 * time.Millisecond) // stands for a query to a database
	_, _ = io.WriteString(w, greeting)
}

func is(body []byte, err error) error {
	if err == nil && string(body) != greeting {
		err = fmt.Errorf("%q", body)
	}
	return err
}

// fetch calls f in 50 tasks, 5 times in each, for a server on goroutines.
func fetch(e *env, transport *http.Transport, f func(client *http.Client, url string) error) error {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	defer transport.CloseIdleConnections()
	return e.tasks(50, 5, func(int) error { return f(&http.Client{Transport: transport}, server.URL) })
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return is(io.ReadAll(response.Body))
}

// visit sends requests to a server of e, from goroutines. Their time counts as that of e.
func visit(ctx context.Context, e *env, address string) error {
	clients := e.beside()
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	defer transport.CloseIdleConnections()
	err := clients.tasks(50, 20, func(int) error { return get(ctx, &http.Client{Transport: transport}, "http://"+address) })
	e.took = clients.took
	return err
}
