package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/braidgo/braid/adapters/httppark"
	"github.com/braidgo/braid/internal/testrig/processor"
)

// The rows of idle connections measure what a connection takes while it waits, and what parking costs a server that has work.

var idleBytes = regexp.MustCompile(`(?m)^(.+?) +(\d+) bytes for each connection`)

// idleConns compares two servers of an example, which counts connections with a flag.
func idleConns(example, flag, ours, peer string) opener {
	return func(b *bench) (side, side) {
		run := func() map[string]float64 {
			figures := map[string]float64{}
			for _, m := range idleBytes.FindAllStringSubmatch(string(must(exec.Command(built(example), flag, strconv.Itoa(b.of(8000, 20))).Output())), -1) {
				figures[m[1]] = must(strconv.ParseFloat(m[2], 64))
			}
			return figures
		}
		return b.kept(example, run, ours), b.kept(example, run, peer)
	}
}

// onHTTP serves HTTP with net/http, and parks its idle connections if told to.
func onHTTP(park bool) server {
	return func(b *bench, _ handler) net.Addr {
		ln := must(net.Listen("tcp", "127.0.0.1:0"))
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Hello, world\n") })}
		b.close(func() { _ = s.Close() })
		if park {
			go func() { _ = httppark.Serve(ln, s) }()
		} else {
			go func() { _ = s.Serve(ln) }()
		}
		return ln.Addr()
	}
}

// answerSize returns the bytes of an answer of net/http, whose header has a date of fixed length.
func answerSize(addr string) int {
	c := must(net.Dial("tcp", addr))
	defer c.Close()
	must(io.WriteString(c, httpRequest))
	var answer bytes.Buffer
	r := must(http.ReadResponse(bufio.NewReader(io.TeeReader(c, &answer)), nil))
	must(io.Copy(io.Discard, r.Body))
	return answer.Len()
}

// besidePauses compares the processor time that two servers take for a request, if each request of a connection comes after a pause in
// which the connection is parked. The time to connect counts too.
func besidePauses(conns int) opener {
	return func(b *bench) (ours, peer side) {
		conns := b.of(conns, 2)
		of := func(park bool) side {
			drive := b.driven("pauses", onHTTP(park)(b, nil), conns)
			return func() float64 {
				used, start := processor.Used(), time.Now()
				each := drive()
				return float64(processor.Used()-used) / (float64(time.Since(start)) / each)
			}
		}
		return of(true), of(false)
	}
}

// pause is longer than the time after which httppark parks a connection.
const pause = 150 * time.Millisecond
