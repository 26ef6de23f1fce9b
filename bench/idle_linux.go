package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/httppark"
	"github.com/valyala/fasthttp"
)

// These curves are about connections that have sent one request and wait with their keep-alive: what a server takes for them, and what an
// answer costs on 64 other connections meanwhile.

// idleServers lists the servers in the order of the series. The last one speaks no HTTP but one fixed answer.
var idleServers = []webServer{
	{"net/http", "true", "127.0.0.1", "exec $BENCH -helloserver net/http 127.0.0.1:$PORT"},
	{"fasthttp", "true", "127.0.0.1", "exec $BENCH -helloserver fasthttp 127.0.0.1:$PORT"},
	{"nginx", "command -v nginx", "127.0.0.1", "exec nginx -p $DIR -e stderr -c $DIR/idle.conf"},
	{"net/http with httppark", "true", "127.0.0.1", "exec $BENCH -helloserver httppark 127.0.0.1:$PORT"},
	{"event loop, ServeParked", "true", "127.0.0.1", "exec $BENCH -helloserver loop 127.0.0.1:$PORT"},
}

const hello = "Hello, world\n"

// helloServers answer each request with hello.
var helloServers = map[string]func(addr string) error{
	"net/http": func(addr string) error { return http.ListenAndServe(addr, http.HandlerFunc(sayHello)) },
	"fasthttp": func(addr string) error {
		return fasthttp.ListenAndServe(addr, func(c *fasthttp.RequestCtx) { _, _ = c.WriteString(hello) })
	},
	"httppark": func(addr string) error {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		return httppark.Serve(ln, &http.Server{Handler: http.HandlerFunc(sayHello)})
	},
	"loop": func(addr string) error {
		loop, err := eventloop.New(eventloop.Options{})
		if err != nil {
			return err
		}
		ln, err := loop.Listen("tcp", addr)
		if err != nil {
			return err
		}
		return ln.ServeParked(bg, func(_ context.Context, c net.Conn) error {
			var request [512]byte // wrk and the idle connections send a request at once
			_, err := c.Read(request[:])
			if err == nil {
				_, err = io.WriteString(c, response)
			}
			return err
		})
	},
}

func sayHello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, hello) }

// helloHere runs a server. The arguments are its name and the address.
func helloHere(args []string) any { return helloServers[args[0]](args[1]) }

var idleAxes = [2]struct{ suffix, label string }{
	{"-memory", "memory of the server, MB"},
	{"-processor", "processor time of the server for an answer, µs"},
}

func idleCurves() (all []curve) {
	for i, axis := range idleAxes {
		c := curve{figure: figure{ID: "idle-conns" + axis.suffix, Title: "HTTP connections that wait with their keep-alive",
			About: "Each has sent one request. The memory is that of all processes of the server, and the answers are those on 64 other connections, driven by wrk.",
			X:     "idle connections", LogX: true, Y: axis.label, LogY: i == 0, Rounds: 3}, points: []float64{500, 2000, 8000, 16_000}, tiny: []float64{2}, cold: true}
		for _, s := range idleServers {
			c.series = append(c.series, s.name)
		}
		c.open = func(b *bench, x float64) []side { return idleSides(b, int(x), i) }
		all = append(all, c)
	}
	return all
}

func idleSides(b *bench, conns, index int) []side {
	all := make([]side, len(idleServers))
	if _, err := exec.LookPath("wrk"); err != nil {
		b.note("wrk is not installed.")
		return all
	}
	for i, s := range idleServers {
		if exec.Command("sh", "-c", s.needs).Run() != nil {
			b.note(s.name + " is not installed: left out.")
			continue
		}
		all[i] = b.kept(fmt.Sprint(s.name, " with idle connections: ", conns), func() map[string]float64 { return measureIdle(b, s, conns) }, idleAxes[index].suffix)
	}
	return all
}

// measureIdle starts a server, opens the connections, and measures the server while they wait.
func measureIdle(b *bench, s webServer, conns int) map[string]float64 {
	ln := must(net.Listen("tcp", s.address+":0"))
	addr, dir := ln.Addr().String(), scratch()
	_, port, _ := net.SplitHostPort(addr)
	ln.Close()
	group, kill := startServer(s.command, addr, withSettings(map[string]string{
		"PORT": port, "DIR": dir, "NUMBER": "1", "PER": "1", "BENCH": must(os.Executable()), "PROCESSORS": strconv.Itoa(2),
	}))
	defer kill()
	for range conns {
		c := must(net.Dial("tcp", addr))
		defer c.Close()
		must(io.WriteString(c, httpRequest))
		var answer [1024]byte
		must(c.Read(answer[:]))
	}
	d := time.Duration(b.of(int(2*time.Second), int(time.Second)))
	time.Sleep(time.Duration(b.of(int(time.Second), 0))) // connections are parked after a tenth of it
	_, memory := usage(group)
	wrk(dir, addr, b.of(64, 2), d/2)
	before, _ := usage(group)
	got := wrk(dir, addr, b.of(64, 2), d)
	after, _ := usage(group)
	if got.Failed > 0 {
		b.note(fmt.Sprintf("%s, %d connections: %.0f requests had no answer.", s.name, conns, got.Failed))
	}
	return map[string]float64{"-memory": memory / 1e6, "-processor": float64(after-before) / 1e3 / got.Requests}
}
