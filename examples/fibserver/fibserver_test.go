package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wide has limits that only tests of limits reach.
var wide = limits{width: 256, timeout: time.Hour}

func start(t *testing.T) *composed { return startWith(t, wide) }

func startWith(t *testing.T, lim limits) *composed {
	t.Helper()
	t.Cleanup(schedtest.Within(t, schedtest.Deadline))
	c, err := startComposed("127.0.0.1:0", 1, 2, lim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(0); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A client is one connection.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, c *composed) *client {
	t.Helper()
	conn, err := net.Dial("tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

func (c *client) expect(status int, body string) *http.Response {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatalf("want %d %q: %v", status, body, err)
	}
	got, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if r.StatusCode != status || body != "" && strings.TrimSpace(string(got)) != body {
		c.t.Fatalf("%s %q, want %d %q", r.Status, got, status, body)
	}
	return r
}

func (c *client) expectEnd() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); err != io.EOF {
		c.t.Fatalf("%q, %v, want the end", b, err)
	}
}

func TestAnswers(t *testing.T) {
	c := dial(t, start(t))
	for _, a := range []struct{ n, fib int }{{0, 0}, {1, 1}, {2, 1}, {20, 6765}, {21, 10946}, {30, 832040}} {
		c.send(get(fmt.Sprint("/fib/", a.n))) // all requests on one connection
		c.expect(200, fmt.Sprint(a.fib))
	}
}

func TestBadRequestsLeaveTheConnectionUsable(t *testing.T) {
	c := dial(t, start(t))
	for path, status := range map[string]int{
		"/fib/abc": 400, "/fib/": 400, "/fib/-1": 400, "/fib/51": 400, "/fib/+1": 400, "/fib/1.5": 400, "/fib/99999999999999999999": 400,
		"/": 404, "/fib": 404, "/fibs/1": 404,
	} {
		c.send(get(path))
		c.expect(status, "")
	}
	c.send("POST /fib/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
	if r := c.expect(405, ""); r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %q", r.Header.Get("Allow"))
	}
	c.send("POST /fib/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	c.expect(405, "")
	c.send("GET /fib/7 HTTP/1.1\r\n\r\n") // a request without a Host
	c.expect(400, "")
	c.send("HEAD /fib/7 HTTP/1.1\r\nHost: x\r\n\r\n" + get("/fib/8"))
	if r, err := http.ReadResponse(c.in, &http.Request{Method: "HEAD"}); err != nil || r.ContentLength != 3 {
		t.Errorf("HEAD: %v, %v", r, err)
	}
	c.expect(200, "21")
}

func TestRequestsThatEndTheConnection(t *testing.T) {
	s := start(t)
	for name, a := range map[string]struct {
		request string
		status  int
	}{
		"garbage":           {"\x16\x03\x01 hello\r\n\r\n", 400},
		"no such protocol":  {"GET /fib/1 HTTP/9.1\r\nHost: x\r\n\r\n", 400},
		"bad escape":        {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"relative URI":      {"GET fib/1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"bad header":        {"GET /fib/1 HTTP/1.1\r\nHost x\r\n\r\n", 400},
		"two lengths":       {"POST /fib/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		"long header":       {"GET /fib/1 HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", 431},
		"long request line": {"GET /" + strings.Repeat("x", 2*maxHeader) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"long body":         {"POST /fib/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), 405},
		"expect":            {"POST /fib/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", 417},
		"close":             {"GET /fib/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200},
		"HTTP/1.0":          {"GET /fib/1 HTTP/1.0\r\n\r\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			c.send(a.request)
			if r := c.expect(a.status, ""); !r.Close {
				t.Error("the response does not say that it is the last one")
			}
			c.expectEnd()
		})
	}
}

func TestPipelining(t *testing.T) {
	c := dial(t, start(t))
	c.send(get("/fib/1") + get("/fib/25") + get("/fib/abc") + get("/fib/26") + get("/fib/10"))
	c.expect(200, "1")
	c.expect(200, "75025")
	c.expect(400, "")
	c.expect(200, "121393")
	c.expect(200, "55")
	c.send("GET /fib/25 HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n" + strings.Repeat("x", 4000) + get("/fib/3"))
	c.expect(200, "75025")
	c.expect(200, "2")
	c.send(get("/fib/32")) // the second request comes while the first is computed
	c.send(get("/fib/2"))
	c.expect(200, "2178309")
	c.expect(200, "1")
}

// A client that closes only its writing half, such as nc -N, gets its answer. The server must not take it for a client that has
// left.
func TestHalfClosedClientsAreAnswered(t *testing.T) {
	s := start(t)
	for n, fib := range map[int]string{1: "1", 20: "6765", 21: "10946", 25: "75025", 33: "3524578"} {
		c := dial(t, s)
		c.send(get("/fib/2") + get(fmt.Sprint("/fib/", n)))
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.expect(200, "1")
		c.expect(200, fib)
		c.expectEnd()
	}
}

// reset closes the connection with a RST.
func (c *client) reset() {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		c.t.Fatal(err)
	}
	c.Close()
}

// While a computation takes seconds, other requests are answered as fast as without it. When its connection is reset, the
// computation ends.
func TestTheLoopGoesOnServing(t *testing.T) {
	s := start(t)
	costly := dial(t, s)
	costly.send(get("/fib/45"))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = costly.in.Peek(1)
	}()
	schedtest.Eventually(t, "it is computed", func() bool { return s.pool.Stats().Live > 0 })
	var all sync.WaitGroup
	for range 10 {
		c := dial(t, s)
		all.Go(func() {
			for range 20 {
				c.send(get("/fib/1"))
				c.expect(200, "1")
			}
		})
	}
	all.Wait()
	select {
	case <-answered:
		t.Error("the costly request was answered first: the others have waited, or this machine is too fast for the test")
	default:
	}
	if s.pool.Stats().Live == 0 {
		t.Error("the computation is over")
	}
	costly.reset()
	schedtest.Eventually(t, "the computation is over", func() bool { return s.pool.Stats().Live == 0 })
}

// A request that exceeds the width is refused. Its connection stays open.
func TestWidth(t *testing.T) {
	s := startWith(t, limits{width: 1, timeout: time.Hour})
	first, second := dial(t, s), dial(t, s)
	first.send(get("/fib/50"))
	schedtest.Eventually(t, "it is computed", func() bool { return s.pool.Stats().Live > 0 })
	second.send(get("/fib/30"))
	if r := second.expect(503, ""); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	second.send(get("/fib/20")) // too cheap to need a place
	second.expect(200, "6765")
	first.reset()
	schedtest.Eventually(t, "its place is free", func() bool { st := s.fibs.Stats(); return st.Handlers+st.Busy+st.Waiting == 0 })
	second.send(get("/fib/30"))
	second.expect(200, "832040")
}

func TestTimeout(t *testing.T) {
	s := startWith(t, limits{width: 256, timeout: 20 * time.Millisecond})
	c := dial(t, s)
	c.send(get("/fib/50"))
	c.expect(504, "")
	c.send(get("/fib/20"))
	c.expect(200, "6765")
	// A client that closes both halves looks like one that waits, so only the time limit ends the computation.
	gone := dial(t, s)
	gone.send(get("/fib/50"))
	gone.Close()
	schedtest.Eventually(t, "it was accepted", func() bool { return s.fibs.Stats().Accepted == 2 })
	schedtest.Eventually(t, "the computation is over", func() bool { return s.pool.Stats().Live == 0 })
}

// During a computation of a minute, requests take at most three times as long as during the same computation in net/http. The
// computation in net/http uses one goroutine, so a second processor stays free. Both servers run at the same time, so a loaded
// machine usually slows down both; the best of several attempts counts.
func TestCostlyRequestsStarveNobody(t *testing.T) {
	s := start(t)
	var computes atomic.Bool
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := parse(r)
		for n == 50 && r.Context().Err() == nil { // checks the context; otherwise the computation could not be stopped
			computes.Store(true)
			_ = sequential(25)
		}
		fmt.Fprintln(w, sequential(min(n, 25)))
	}))
	defer peer.Close()
	dial(t, s).send(get("/fib/50"))
	schedtest.Eventually(t, "it is computed", func() bool { return s.pool.Stats().Live > 0 })
	conn, err := net.Dial("tcp", peer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, get("/fib/50")); err != nil {
		t.Fatal(err)
	}
	schedtest.Eventually(t, "the same by net/http", computes.Load)
	requests := 20
	if schedtest.Race { // with -race, each takes a hundred times as long
		requests = 3
	}
	var worst [2]time.Duration
	for range 15 {
		var took [2][]time.Duration
		for range requests {
			for i, addr := range []net.Addr{s.Addr(), peer.Listener.Addr()} {
				one, err := askUntil(addr.String(), 25, time.Now(), 0, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				took[i] = append(took[i], one...)
			}
		}
		for i := range took {
			worst[i] = slices.Max(took[i])
		}
		t.Logf("at most %v, and %v with net/http", worst[0], worst[1])
		if worst[0] <= 3*worst[1] {
			return
		}
	}
	t.Errorf("at most %v, and %v with net/http", worst[0], worst[1])
}

func TestShutdownAnswersWhatIsInFlight(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s, err := startComposed("127.0.0.1:0", 2, 2, wide)
	if err != nil {
		t.Fatal(err)
	}
	busy, idle := dial(t, s), dial(t, s)
	idle.send(get("/fib/1"))
	idle.expect(200, "1")
	busy.send(get("/fib/36"))
	schedtest.Eventually(t, "it is computed", func() bool { return s.pool.Stats().Live > 0 })
	done := make(chan error)
	go func() { done <- s.Shutdown(time.Minute) }()
	idle.expectEnd()
	busy.expect(200, "14930352")
	busy.expectEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("still accepting")
	}
}

func TestShutdownCancelsWhatTakesTooLong(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s, err := startComposed("127.0.0.1:0", 1, 2, wide)
	if err != nil {
		t.Fatal(err)
	}
	dial(t, s).send(get("/fib/50")) // takes more than half a minute
	schedtest.Eventually(t, "it is computed", func() bool { return s.pool.Stats().Live > 0 })
	if err := s.Shutdown(time.Millisecond); err != nil {
		t.Error(err)
	}
}

// The figures of -load are those of answered requests, for each of the servers.
func TestCompare(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s := start(t)
	r, err := drive(s.Addr().String(), 50*time.Millisecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cheap.PerSecond == 0 || r.Costly.PerSecond == 0 || r.Cheap.P50 > r.Cheap.P90 || r.Cheap.P90 > r.Cheap.P99 {
		t.Errorf("%+v", r)
	}
	addr, shutdown, err := startNetHTTP()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := drive(addr.String(), 50*time.Millisecond, equalRate); err != nil {
		t.Error(err)
	}
	if err := shutdown(time.Second); err != nil {
		t.Error(err)
	}
}

// The census shows the task of a connection that sends nothing, and that of Serve.
func TestDebug(t *testing.T) {
	at, stop, err := startDebug("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c := dial(t, start(t))
	c.send(get("/fib/20"))
	c.expect(200, "6765")
	read := func() string {
		r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + at.String() + "/debug/braid/")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	schedtest.Eventually(t, "the census has both", func() bool {
		text := read()
		return strings.Contains(text, "(eventloop): eventloop.boundConn.Read at ") && strings.Contains(text, "eventloop.Listener.Serve")
	})
}
