package httppark_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/httppark"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

// A site is a server under test.
type site struct {
	*httppark.Server
	t      *testing.T
	ln     net.Listener
	served chan error
	dial   func() (net.Conn, error)
}

// networks are the kinds of connections that all tests use.
var networks = []string{"tcp", "unix", "tls"}

// open serves srv on a network. Connections are parked after a few milliseconds.
func open(t *testing.T, network string, srv *http.Server) *site {
	s := &site{Server: &httppark.Server{Server: srv, ParkAfter: 4 * time.Millisecond}, t: t, served: make(chan error, 1)}
	limit := time.Minute
	if os.Getenv("BRAID_ENDURANCE") != "" {
		limit *= 15
	}
	stop := schedtest.Within(t, limit)
	var err error
	switch network {
	case "unix":
		s.ln, err = net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	default:
		s.ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	require.NoError(t, err)
	s.dial = func() (net.Conn, error) { return net.Dial(s.ln.Addr().Network(), s.ln.Addr().String()) }
	serve := func() error { return s.Serve(s.ln) }
	if network == "tls" {
		certificate := httptest.NewUnstartedServer(nil)
		certificate.StartTLS()
		config := certificate.TLS.Clone()
		certificate.Close()
		config.NextProtos = nil
		srv.TLSConfig = config
		serve = func() error { return s.ServeTLS(s.ln, "", "") }
		s.dial = func() (net.Conn, error) {
			return tls.Dial("tcp", s.ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		}
	}
	go func() { s.served <- serve() }()
	t.Cleanup(func() {
		defer stop()
		_ = s.Close()
		require.ErrorIs(t, <-s.served, http.ErrServerClosed)
		require.Zero(t, s.Parked())
	})
	return s
}

func onEach(t *testing.T, f func(t *testing.T, network string)) {
	for _, n := range networks {
		t.Run(n, func(t *testing.T) {
			t.Parallel()
			f(t, n)
		})
	}
}

// parks waits until n connections are parked.
func (s *site) parks(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.Parked() == n }, 20*time.Second, time.Millisecond, "connections are parked")
}

// A client is the other end of a connection.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

// connect dials. A handshake of TLS counts for the timeouts of the server, and may take longer on a busy machine.
func (s *site) connect() *client {
	c, err := s.dial()
	for range 20 {
		if !errors.Is(err, io.EOF) {
			break
		}
		c, err = s.dial()
	}
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return &client{c, s.t, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	_, err := io.WriteString(c, text)
	require.NoError(c.t, err)
}

func (c *client) answer() (status int, body string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.r, nil)
	require.NoError(c.t, err)
	b, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	return r.StatusCode, string(b)
}

func (c *client) get(path string) string {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
	status, body := c.answer()
	require.Equal(c.t, 200, status)
	return body
}

// ends waits until the server has closed the connection.
func (c *client) ends() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err := c.r.ReadByte()
	require.Error(c.t, err)
	require.NotErrorIs(c.t, err, os.ErrDeadlineExceeded, "the server keeps the connection")
}

// echo replies with the path and the body of a request.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(500)
	}
	fmt.Fprint(w, r.URL.Path, string(b), r.Trailer.Get("Mark"))
})

// states records the calls of ConnState.
type states struct {
	mu    sync.Mutex
	all   map[net.Conn][]http.ConnState
	first http.ConnState // the state of the newest connection
}

func (s *states) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[net.Conn][]http.ConnState{}
	}
	if len(s.all[c]) == 0 {
		s.first = state
	}
	s.all[c] = append(s.all[c], state)
}

// forgetClosed removes the closed connections, and returns the number of the others.
func (s *states) forgetClosed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, list := range s.all {
		if list[len(list)-1] == http.StateClosed {
			delete(s.all, c)
		}
	}
	return len(s.all)
}

// each returns the states of the only connection, in order.
func (s *states) each(t *testing.T) []http.ConnState {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.all, 1)
	for _, list := range s.all {
		return append([]http.ConnState(nil), list...)
	}
	return nil
}

func TestAnIdleConnectionHasNoGoroutine(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			var seen states
			contexts := atomic.Int32{}
			s := open(t, network, &http.Server{Handler: echo, ConnState: seen.note, ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
				contexts.Add(1)
				return ctx
			}})
			c := s.connect()
			s.parks(1) // there was no request yet
			before := runtime.NumGoroutine()
			others := make([]*client, 20)
			for i := range others {
				others[i] = s.connect()
				require.Equal(t, "/o", others[i].get("/o"))
			}
			s.parks(21)
			require.LessOrEqual(t, runtime.NumGoroutine(), before+3, "a parked connection keeps a goroutine")
			for _, o := range others {
				_ = o.Close()
			}
			s.parks(1) // the server has noticed that they are closed
			require.Eventually(t, func() bool { return seen.forgetClosed() == 1 }, 20*time.Second, time.Millisecond)
			for range 3 {
				require.Equal(t, "/a", c.get("/a"))
				require.Equal(t, "/b", c.get("/b"), "the second request of a round")
				s.parks(1)
			}
			require.GreaterOrEqual(t, contexts.Load(), int32(1+20+20+3), "ConnContext is called for each goroutine: each client that has closed has cost a second one, and a slow machine parks more often")
			_ = c.Close()
			s.parks(0)
			require.Eventually(t, func() bool { l := seen.each(t); return l[len(l)-1] == http.StateClosed }, 10*time.Second, time.Millisecond)
			const a, i = http.StateActive, http.StateIdle
			require.Equal(t, []http.ConnState{http.StateNew, a, i, a, i, a, i, a, i, a, i, a, i, http.StateClosed}, seen.each(t))
		})
	}
}

// TestAPartOfARequest pauses in the middle of a request, and no byte must be lost.
func TestAPartOfARequest(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		s := open(t, network, &http.Server{Handler: echo})
		get := func(p string) string { return "GET " + p + " HTTP/1.1\r\nHost: x\r\n\r\n" }
		const post = "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789"
		for what, parts := range map[string][]string{
			"the first byte":                     {"G", "ET /1 HTTP/1.1\r\nHost: x\r\n\r\n"},
			"a line":                             {"GET /1 HTTP/1.1\r\n", "Host: x\r\n\r\n"},
			"a byte of the second":               {get("/1") + "G", get("/2")[1:]},
			"three bytes of the second":          {get("/1") + "GET", get("/2")[3:]},
			"four bytes of the second":           {get("/1") + "GET ", get("/2")[4:]},
			"a line of the second":               {get("/1") + "GET /2 HTTP/1.1\r\n", "Host: x\r\n\r\n"},
			"all but the end of the second":      {get("/1") + "GET /2 HTTP/1.1\r\nHost: x\r\n", "\r\n"},
			"all but a byte of the second":       {get("/1") + get("/2")[:len(get("/2"))-1], "\n"},
			"the whole second, then a third":     {get("/1") + get("/2"), get("/3")},
			"a byte of the second after a pause": {get("/1"), "G", get("/2")[1:]},
			"half of a body":                     {post[:len(post)-5], post[len(post)-5:] + get("/2")},
			"a body and a byte":                  {post + "G", get("/2")[1:]},
			"a body like the end of a header":    {post[:len(post)-4] + "\r\n\r\n", "GET /2 HTTP/1.1\r\n", "Host: x\r\n\r\n"},
			"a body and a line":                  {post + "GET /2 HTTP/1.1\r\n", "Host: x\r\n\r\n"},
			"a chunked body and its trailer":     {"POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: Mark\r\n\r\n3\r\nabc\r\n", "0\r\nMark: m", "\r\n\r\n"},
		} {
			c := s.connect()
			for _, p := range parts {
				c.send(p)
				time.Sleep(15 * time.Millisecond) // longer than ParkAfter
			}
			text := strings.Join(parts, "")
			want := []string{"/1", "/2", "/3"}
			switch {
			case strings.Contains(text, "chunked"):
				want = []string{"/pabcm"}
			case strings.Contains(text, "/p"):
				_, body, _ := strings.Cut(parts[0], "\r\n\r\n")
				want = []string{"/p" + (body + strings.Join(parts[1:], ""))[:10], "/2"}
			}
			for _, w := range want[:strings.Count(text, "HTTP/1.1")] {
				status, body := c.answer()
				require.Equal(t, 200, status, what)
				require.Equal(t, w, body, what)
			}
			require.Equal(t, "/end", c.get("/end"), what)
			c.send("GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			_, body := c.answer()
			require.Equal(t, "/last", body, what)
			c.ends()
		}
	})
}

func TestExpectContinueWaits(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		s := open(t, network, &http.Server{Handler: echo})
		c := s.connect()
		c.get("/a")
		s.parks(1)
		c.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
		line, err := c.r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
		_, _ = c.r.ReadString('\n')
		time.Sleep(15 * time.Millisecond)
		c.send("abc")
		_, body := c.answer()
		require.Equal(t, "/pabc", body)
		s.parks(1)
	})
}

// TestAHandlerThatTakesLong has a handler that runs for longer than ParkAfter, while net/http watches for the end of the client.
func TestAHandlerThatTakesLong(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		ended := make(chan struct{})
		s := open(t, network, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/gone" {
				<-r.Context().Done()
				close(ended)
				return
			}
			time.Sleep(20 * time.Millisecond)
			fmt.Fprint(w, "late")
		})})
		c := s.connect()
		require.Equal(t, "late", c.get("/"))
		s.parks(1)
		c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nG") // the last byte arrives while the handler runs
		_, body := c.answer()
		require.Equal(t, "late", body)
		time.Sleep(15 * time.Millisecond)
		c.send("ET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_, body = c.answer()
		require.Equal(t, "late", body)
		c.send("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(15 * time.Millisecond)
		_ = c.Close()
		<-ended
		s.parks(0)
	})
}

func TestHijack(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		var seen states
		s := open(t, network, &http.Server{ConnState: seen.note, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/up" {
				return
			}
			c, rw, err := http.NewResponseController(w).Hijack()
			require.NoError(t, err)
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			_ = rw.Flush()
			go func() {
				defer c.Close()
				for {
					b, err := rw.ReadByte()
					if err != nil {
						return
					}
					_, _ = c.Write([]byte{b})
				}
			}()
		})})
		c := s.connect()
		c.get("/a")
		s.parks(1)
		c.send("GET /up HTTP/1.1\r\nHost: x\r\n\r\n")
		_, err := http.ReadResponse(c.r, nil)
		require.NoError(t, err)
		for range 3 {
			time.Sleep(15 * time.Millisecond)
			c.send("z")
			b, err := c.r.ReadByte()
			require.NoError(t, err)
			require.EqualValues(t, 'z', b)
		}
		require.Zero(t, s.Parked())
		l := seen.each(t)
		require.Equal(t, http.StateHijacked, l[len(l)-1])
	})
}

func TestTimeouts(t *testing.T) {
	const soon = 150 * time.Millisecond
	onEach(t, func(t *testing.T, network string) {
		t.Run("idle", func(t *testing.T) {
			var seen states
			s := open(t, network, &http.Server{Handler: echo, IdleTimeout: 5 * soon, ConnState: seen.note})
			c := s.connect()
			for range 3 {
				c.get("/a")
				s.parks(1)
				time.Sleep(soon)
			}
			began := time.Now()
			c.get("/a")
			c.ends()
			require.GreaterOrEqual(t, time.Since(began), 5*soon)
			s.parks(0)
			require.Eventually(t, func() bool { l := seen.each(t); return l[len(l)-1] == http.StateClosed }, 10*time.Second, time.Millisecond)
		})
		t.Run("header", func(t *testing.T) {
			s := open(t, network, &http.Server{Handler: echo, ReadHeaderTimeout: soon})
			c := s.connect()
			c.ends() // without sending a byte
			c = s.connect()
			c.send("GET /a HTTP/1.1\r\n")
			c.ends()
		})
		t.Run("read", func(t *testing.T) {
			s := open(t, network, &http.Server{Handler: echo, ReadTimeout: soon})
			c := s.connect()
			c.get("/a")
			c.ends() // net/http uses the same timeout for idle connections
		})
		t.Run("no idle time", func(t *testing.T) {
			s := open(t, network, &http.Server{Handler: echo, ReadHeaderTimeout: soon, IdleTimeout: time.Hour})
			c := s.connect()
			c.get("/a")
			s.parks(1)
			time.Sleep(2 * soon)
			require.Equal(t, "/b", c.get("/b"), "the timeout of the header has ended an idle connection")
			s.parks(1)
			c.send("GET /a HTTP/1.1\r\n")
			c.ends()
		})
		t.Run("set while parked", func(t *testing.T) {
			const idle = time.Second // a busy machine must set the deadline before
			var conn atomic.Pointer[net.Conn]
			s := open(t, network, &http.Server{Handler: echo, IdleTimeout: idle, ConnState: func(c net.Conn, _ http.ConnState) { conn.Store(&c) }})
			c := s.connect()
			c.get("/a")
			s.parks(1)
			require.NoError(t, (*conn.Load()).SetReadDeadline(time.Time{}))
			time.Sleep(idle + soon)
			require.Equal(t, "/b", c.get("/b"), "an idle connection has ended at a deadline that was removed")
			s.parks(1)
			require.NoError(t, (*conn.Load()).SetDeadline(time.Now().Add(time.Hour)))
			time.Sleep(idle + soon)
			require.Equal(t, 1, s.Parked())
			require.NoError(t, (*conn.Load()).SetReadDeadline(time.Now()))
			c.ends()
		})
		t.Run("shorter than ParkAfter", func(t *testing.T) {
			s := open(t, network, &http.Server{Handler: echo, IdleTimeout: 2 * time.Millisecond})
			c := s.connect()
			c.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
			c.answer()
			c.ends()
		})
	})
}

func TestShutdown(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		began, finish := make(chan struct{}), make(chan struct{})
		var closed atomic.Int32
		s := open(t, network, &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					close(began)
					<-finish
				}
				fmt.Fprint(w, "done")
			}),
			ConnState: func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					closed.Add(1)
				}
			},
		})
		idle := make([]*client, 10)
		for i := range idle {
			idle[i] = s.connect()
			idle[i].get("/")
		}
		s.parks(10)
		slow := s.connect()
		slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
		<-began
		down := make(chan error)
		go func() { down <- s.Shutdown(t.Context()) }()
		for _, c := range idle {
			c.ends()
		}
		select {
		case <-down:
			require.Fail(t, "Shutdown has not waited for a handler")
		case <-time.After(20 * time.Millisecond):
		}
		close(finish)
		_, body := slow.answer()
		require.Equal(t, "done", body)
		require.NoError(t, <-down)
		require.Eventually(t, func() bool { return closed.Load() == 11 }, 10*time.Second, time.Millisecond)
		_, err := s.dial()
		require.Error(t, err)
	})
}

func TestShutdownClosesTheParkedOnes(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		s := open(t, network, &http.Server{Handler: echo})
		for range 10 {
			s.connect().get("/")
		}
		s.parks(10)
		require.NoError(t, s.Shutdown(t.Context()))
		require.Zero(t, s.Parked(), "Shutdown has returned before the parked connections were closed")
	})
}

func TestWithoutKeepAlives(t *testing.T) {
	s := open(t, "tcp", &http.Server{Handler: echo})
	c := s.connect()
	c.get("/a")
	s.parks(1)
	s.SetKeepAlivesEnabled(false)
	c.ends()
	s.SetKeepAlivesEnabled(true)
	c = s.connect()
	c.get("/a")
	s.parks(1)
}

func TestAHandlerThatPanics(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		s := open(t, network, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/abort" {
				panic(http.ErrAbortHandler)
			}
		})})
		c := s.connect()
		c.get("/a")
		s.parks(1)
		c.send("GET /abort HTTP/1.1\r\nHost: x\r\n\r\n")
		c.ends()
		s.parks(0)
	})
}

// TestACloseWhileParked closes a parked connection from outside the server. Its owner has got the connection from ConnContext.
func TestACloseWhileParked(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		var last atomic.Value
		var seen states
		s := open(t, network, &http.Server{Handler: echo, ConnState: seen.note, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			last.Store(&c)
			return ctx
		}})
		c := s.connect()
		c.get("/a")
		s.parks(1)
		require.NoError(t, (*last.Load().(*net.Conn)).Close())
		c.ends()
		s.parks(0)
		require.Eventually(t, func() bool { l := seen.each(t); return l[len(l)-1] == http.StateClosed }, 10*time.Second, time.Millisecond)
	})
}

func TestWhatAHandlerSees(t *testing.T) {
	onEach(t, func(t *testing.T, network string) {
		file := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(file, make([]byte, 3<<20), 0o600))
		s := open(t, network, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/file" {
				http.ServeFile(w, r, file)
				return
			}
			fmt.Fprint(w, r.RemoteAddr, " ", r.TLS != nil)
		})})
		c := s.connect()
		want := fmt.Sprint(c.LocalAddr(), " ", network == "tls")
		if network == "unix" {
			want = "@ false"
		}
		for range 2 {
			require.Equal(t, want, c.get("/"))
			s.parks(1)
		}
		require.Len(t, c.get("/file"), 3<<20)
		s.parks(1)
	})
}

func TestHTTP2IsNotParked(t *testing.T) {
	s := open(t, "tls", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })})
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	for range 2 {
		r, err := (&http.Client{Transport: tr}).Get("https://" + s.ln.Addr().String())
		require.NoError(t, err)
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		_ = r.Body.Close()
		require.Equal(t, "HTTP/2.0", string(b))
		time.Sleep(15 * time.Millisecond)
		require.Zero(t, s.Parked())
	}
}

// Nor is a connection parked without TLS: an idle server continues to read after bytes that end with an empty line, as an HTTP/1 header
// does.
func TestHTTP2WithoutTLS(t *testing.T) {
	srv := &http.Server{Handler: echo, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	s := open(t, "tcp", srv)
	c := s.connect()
	defer c.Close()
	c.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	time.Sleep(15 * time.Millisecond)
	require.Zero(t, s.Parked())
	settings := string([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // a frame of length 0 and type 4
	c.send(settings)
	for { // the server's own frames, and its answer, which has the flag 1
		frame := make([]byte, 9)
		_, err := io.ReadFull(c.r, frame)
		require.NoError(t, err)
		_, err = c.r.Discard(int(frame[1])<<8 | int(frame[2]))
		require.NoError(t, err)
		if frame[3] == 4 && frame[4] == 1 {
			break
		}
	}
}

func TestAClientWithoutTLS(t *testing.T) {
	s := open(t, "tls", &http.Server{Handler: echo})
	c, err := net.Dial("tcp", s.ln.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(b), "Client sent an HTTP request to an HTTPS server")
	silent, err := net.Dial("tcp", s.ln.Addr().String()) // the handshake is under way when the server closes
	require.NoError(t, err)
	defer silent.Close()
}

// An opaque listener hides the descriptors of its connections.
type opaque struct{ net.Listener }

func (o opaque) Accept() (net.Conn, error) {
	c, err := o.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

func TestAConnectionWithoutADescriptorIsServed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: echo}
	served := make(chan error)
	go func() { served <- httppark.Serve(opaque{ln}, srv) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	c := &client{conn, t, bufio.NewReader(conn)}
	require.Equal(t, "/a", c.get("/a"))
	require.NoError(t, srv.Shutdown(t.Context()))
	c.ends()
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

// A weak listener fails now and then, and finally for good.
type weak struct {
	net.Listener
	fails chan error
}

type passing struct{ error }

func (passing) Timeout() bool   { return false }
func (passing) Temporary() bool { return true }

func (w weak) Accept() (net.Conn, error) {
	select {
	case err := <-w.fails:
		return nil, err
	default:
		return w.Listener.Accept()
	}
}

func TestAnAcceptThatFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := weak{ln, make(chan error, 6)}
	w.fails <- passing{errors.New("few descriptors")}
	s := &httppark.Server{Server: &http.Server{Handler: echo}, ParkAfter: time.Millisecond}
	served := make(chan error)
	go func() { served <- s.Serve(w) }()
	dial := func() *client {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		return &client{conn, t, bufio.NewReader(conn)}
	}
	c := dial()
	require.Equal(t, "/a", c.get("/a"))
	require.Eventually(t, func() bool { return s.Parked() == 1 }, 20*time.Second, time.Millisecond)
	for range 6 { // Accept fails meanwhile: with the pauses of http.Server, the last would be accepted after 160 ms
		w.fails <- passing{errors.New("few descriptors")}
	}
	_ = dial().Close() // ends the running Accept
	began := time.Now()
	for range 4 {
		require.Equal(t, "/a", c.get("/a"))
		require.Eventually(t, func() bool { return s.Parked() == 1 }, 20*time.Second, time.Millisecond)
	}
	require.NotEmpty(t, w.fails, "the shortage was over after %v, too soon for this test", time.Since(began))
	for len(w.fails) > 0 {
		<-w.fails
	}
	gone := errors.New("gone")
	w.fails <- gone
	last := dial() // ends the running Accept
	require.Equal(t, gone, <-served)
	c.ends() // the connection was parked
	_ = last.Close()
	_ = s.Close()
}

// TestTwoServersOfOneHTTPServer creates a Server for each of two listeners, one after the other. The user's ConnState gets the
// changes of all connections.
func TestTwoServersOfOneHTTPServer(t *testing.T) {
	var seen states
	srv := &http.Server{Handler: echo, ConnState: seen.note}
	for range 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s, served := &httppark.Server{Server: srv, ParkAfter: time.Millisecond}, make(chan error)
		go func() { served <- s.Serve(ln) }()
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		c := &client{conn, t, bufio.NewReader(conn)}
		require.Equal(t, "/a", c.get("/a"))
		require.Eventually(t, func() bool { return s.Parked() == 1 }, 20*time.Second, time.Millisecond)
		_ = conn.Close()
		require.Eventually(t, func() bool { return seen.forgetClosed() == 0 }, 20*time.Second, time.Millisecond)
		_ = ln.Close()
		require.Error(t, <-served)
		require.Equal(t, http.StateNew, seen.first)
	}
	_ = srv.Close()
}
