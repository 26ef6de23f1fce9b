package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/httppark"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// TestMain runs a server if the measuring process has started this one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A site is a server under test.
type site struct {
	*hub
	t      *testing.T
	http   *http.Server
	addr   string
	config *tls.Config // of a client
}

// kinds are the kinds of servers for the tests. Three of them park connections: net/http, httppark, and net/http with a listener of the
// loop. The server with net/http over TLS does not.
var kinds = []string{"net/http", "httppark", "loop", "tls"}

func open(t *testing.T, kind string) *site {
	stop := schedtest.Within(t, 2*time.Minute)
	loop, err := eventloop.New(eventloop.Options{Loops: 2, StallAfter: -1})
	require.NoError(t, err)
	s := &site{hub: newHub(loop, echo), t: t}
	s.http = &http.Server{Handler: s.hub}
	var ln net.Listener
	if kind == "loop" {
		ln, err = loop.Listen("tcp", "127.0.0.1:0")
	} else {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	require.NoError(t, err)
	s.addr = ln.Addr().String()
	serve := func() error { return s.http.Serve(ln) }
	switch kind {
	case "httppark":
		park := &httppark.Server{Server: s.http, ParkAfter: time.Millisecond}
		serve = func() error { return park.Serve(ln) }
	case "tls":
		certificate := httptest.NewUnstartedServer(nil)
		certificate.StartTLS()
		s.http.TLSConfig = &tls.Config{Certificates: certificate.TLS.Certificates}
		certificate.Close()
		s.config = &tls.Config{InsecureSkipVerify: true}
		serve = func() error { return s.http.ServeTLS(ln, "", "") }
	}
	served := make(chan error, 1)
	go func() { served <- serve() }()
	t.Cleanup(func() {
		defer stop()
		require.NoError(t, s.http.Shutdown(context.Background()))
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		require.NoError(t, s.Shutdown(context.Background()))
		require.NoError(t, loop.Close())
	})
	return s
}

func onEach(t *testing.T, f func(t *testing.T, s *site)) {
	for _, k := range kinds {
		t.Run(k, func(t *testing.T) { f(t, open(t, k)) })
	}
}

// dial connects with a library other than the server's.
func (s *site) dial(opts *websocket.DialOptions) *websocket.Conn {
	s.t.Helper()
	if opts == nil {
		opts = &websocket.DialOptions{}
	}
	transport := &http.Transport{TLSClientConfig: s.config}
	opts.HTTPClient = &http.Client{Transport: transport}
	scheme := "ws://"
	if s.config != nil {
		scheme = "wss://"
	}
	c, _, err := websocket.Dial(context.Background(), scheme+s.addr, opts)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		_ = c.CloseNow()
		transport.CloseIdleConnections()
	})
	return c
}

// raw connects without a library that hides frames.
func (s *site) raw() net.Conn {
	s.t.Helper()
	c, err := upgraded(s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func asks(t *testing.T, c *websocket.Conn, kind websocket.MessageType, text string) {
	t.Helper()
	require.NoError(t, c.Write(t.Context(), kind, []byte(text)))
	got, b, err := c.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, kind, got)
	require.Equal(t, text, string(b))
}

// parks waits until no connection has a task.
func (s *site) parks() {
	s.t.Helper()
	schedtest.Eventually(s.t, "no connection has a task", func() bool { return s.loop.Stats().Live == 0 })
}

func TestEcho(t *testing.T) {
	onEach(t, func(t *testing.T, s *site) {
		c := s.dial(nil)
		c.SetReadLimit(-1)
		for i, text := range []string{"a", "", strings.Repeat("ü", 100), strings.Repeat("x", 5000), strings.Repeat("y", maxMessage)} {
			asks(t, c, websocket.MessageText, text)
			asks(t, c, websocket.MessageBinary, text)
			if i%2 == 0 {
				s.parks()
			}
		}
	})
}

func TestCloseHandshake(t *testing.T) {
	onEach(t, func(t *testing.T, s *site) {
		c := s.dial(nil)
		asks(t, c, websocket.MessageText, "a")
		require.NoError(t, c.Close(websocket.StatusNormalClosure, "bye"), "the server answers with the same status")
		c = s.dial(nil)
		require.NoError(t, c.Close(websocket.StatusNormalClosure, ""), "without a message before")
		s.open.Wait()
	})
}

func TestPing(t *testing.T) {
	onEach(t, func(t *testing.T, s *site) {
		c := s.dial(nil)
		ctx := c.CloseRead(t.Context()) // reads pongs
		for range 3 {
			require.NoError(t, c.Ping(ctx))
			s.parks() // a connection that only pings has no task
		}
	})
}

// TestFragments sends a message in fragments, with pauses and a ping between them.
func TestFragments(t *testing.T) {
	for _, kind := range kinds[:3] {
		t.Run(kind, func(t *testing.T) {
			s := open(t, kind)
			c := s.raw()
			frame := func(op ws.OpCode, fin bool, text string) {
				require.NoError(t, ws.WriteFrame(c, ws.MaskFrame(ws.NewFrame(op, fin, []byte(text)))))
			}
			for range 2 {
				frame(ws.OpText, false, "one ")
				frame(ws.OpContinuation, false, "two ")
				frame(ws.OpPing, true, "p")
				h, err := ws.ReadFrame(c)
				require.NoError(t, err)
				require.Equal(t, ws.OpPong, h.Header.OpCode)
				require.Equal(t, "p", string(h.Payload))
				require.EqualValues(t, 1, s.loop.Stats().Live, "a task waits for the rest of a message")
				frame(ws.OpContinuation, true, "three")
				b, err := wsutil.ReadServerText(c)
				require.NoError(t, err)
				require.Equal(t, "one two three", string(b))
				s.parks()
			}
		})
	}
}

// TestHalfAFrame cuts two messages into two parts at each byte. The client pauses after the first part, which costs a task. No byte is
// lost, and after the second part the connection is parked.
func TestHalfAFrame(t *testing.T) {
	s := open(t, "httppark")
	var two []byte
	for _, text := range []string{"first", "second"} {
		b, err := ws.CompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(text))))
		require.NoError(t, err)
		two = append(two, b...)
	}
	const first = 6 + len("first")
	c := s.raw()
	for cut := 1; cut < len(two); cut++ {
		must(c.Write(two[:cut]))
		if cut >= first {
			b, err := wsutil.ReadServerText(c)
			require.NoError(t, err)
			require.Equal(t, "first", string(b))
		}
		if cut != first {
			schedtest.Eventually(t, "a task waits for the rest", func() bool { return s.loop.Stats().Suspended == 1 })
		}
		must(c.Write(two[cut:]))
		if cut < first {
			b, err := wsutil.ReadServerText(c)
			require.NoError(t, err)
			require.Equal(t, "first", string(b))
		}
		b, err := wsutil.ReadServerText(c)
		require.NoError(t, err)
		require.Equal(t, "second", string(b))
		s.parks()
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestTimes has clients that send nothing, or half a frame, for longer than the server waits.
func TestTimes(t *testing.T) {
	onEach(t, func(t *testing.T, s *site) {
		s.idle, s.whole = 50*time.Millisecond, time.Hour
		began := time.Now()
		_, _, err := s.dial(nil).Read(t.Context())
		require.Error(t, err)
		require.GreaterOrEqual(t, time.Since(began), s.idle)
		s.open.Wait()
	})
	s := open(t, "net/http")
	s.whole = 50 * time.Millisecond
	c := s.raw()
	must(c.Write([]byte{0x81}))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server waits for ever")
	s.open.Wait()
}

func TestMistakesOfAClient(t *testing.T) {
	s := open(t, "net/http")
	for what, c := range map[string]struct {
		frame ws.Frame
		want  ws.StatusCode
	}{
		"no mask":         {ws.NewTextFrame([]byte("a")), ws.StatusProtocolError},
		"no message":      {ws.MaskFrame(ws.NewFrame(ws.OpContinuation, true, nil)), ws.StatusProtocolError},
		"no UTF-8":        {ws.MaskFrame(ws.NewTextFrame([]byte{0xff})), ws.StatusInvalidFramePayloadData},
		"a big message":   {ws.MaskFrame(ws.NewBinaryFrame(make([]byte, maxMessage+1))), ws.StatusMessageTooBig},
		"a reserved code": {ws.MaskFrame(ws.NewFrame(3, true, nil)), ws.StatusProtocolError},
	} {
		raw := s.raw()
		require.NoError(t, ws.WriteFrame(raw, c.frame), what)
		f, err := ws.ReadFrame(raw)
		require.NoError(t, err, what)
		require.Equal(t, ws.OpClose, f.Header.OpCode, what)
		status, _ := ws.ParseCloseFrameData(f.Payload)
		require.Equal(t, c.want, status, what)
		_, err = raw.Read(make([]byte, 1))
		require.Error(t, err, what)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, what)
	}
	s.open.Wait()
}

// TestAMessageBehindTheRequest sends the first message together with the request: net/http has read it before the handler runs.
func TestAMessageBehindTheRequest(t *testing.T) {
	for _, kind := range kinds[:3] {
		t.Run(kind, func(t *testing.T) {
			s := open(t, kind)
			c := must(net.Dial("tcp", s.addr))
			defer c.Close()
			request := "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
				"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
			frame := must(ws.CompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte("early")))))
			must(c.Write(append([]byte(request), frame...)))
			in := bufio.NewReader(c)
			r := must(http.ReadResponse(in, nil))
			require.Equal(t, http.StatusSwitchingProtocols, r.StatusCode)
			f := must(ws.ReadFrame(in))
			require.Equal(t, "early", string(f.Payload))
			s.parks()
			must(c.Write(frame))
			f = must(ws.ReadFrame(in))
			require.Equal(t, "early", string(f.Payload))
		})
	}
}

func TestARequestWithoutAnUpgrade(t *testing.T) {
	s := open(t, "httppark")
	r := must(http.Get("http://" + s.addr))
	require.Equal(t, http.StatusBadRequest, r.StatusCode)
	_ = r.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	s.open.Wait() // and it is not counted
}

// TestShutdown closes parked connections at once, with a close frame, and waits for the answer to half a message.
func TestShutdown(t *testing.T) {
	onEach(t, func(t *testing.T, s *site) {
		conns := make([]*websocket.Conn, 20)
		for i := range conns {
			conns[i] = s.dial(nil)
			asks(t, conns[i], websocket.MessageText, "a")
		}
		s.parks()
		var busy net.Conn
		if s.config == nil {
			busy = s.raw()
			must(busy.Write([]byte{0x81}))
			schedtest.Eventually(t, "a task waits for the rest", func() bool { return s.loop.Stats().Suspended == 1 })
		}
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(context.Background()) }()
		for _, c := range conns {
			_, _, err := c.Read(t.Context())
			require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err), err)
		}
		if busy != nil {
			require.Empty(t, down, "Shutdown has not waited for a message")
			short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			require.ErrorIs(t, s.Shutdown(short), context.DeadlineExceeded)
			cancel()
			rest := must(ws.CompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte("last")))))[1:]
			must(busy.Write(rest))
			b, err := wsutil.ReadServerText(busy)
			require.NoError(t, err)
			require.Equal(t, "last", string(b))
			f := must(ws.ReadFrame(busy))
			status, _ := ws.ParseCloseFrameData(f.Payload)
			require.Equal(t, ws.StatusGoingAway, status)
		}
		require.NoError(t, <-down)
		r := must((&http.Client{Transport: &http.Transport{TLSClientConfig: s.config, DisableKeepAlives: true}}).Get(s.url()))
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
		_ = r.Body.Close()
	})
}

func (s *site) url() string {
	if s.config != nil {
		return "https://" + s.addr
	}
	return "http://" + s.addr
}

// TestAnAnswerThatPanics closes the connection, and no other.
func TestAnAnswerThatPanics(t *testing.T) {
	s := open(t, "net/http")
	s.answer = func(_ context.Context, c io.Writer, op ws.OpCode, b []byte) error {
		if string(b) == "panic" {
			runtime.Goexit() // a panic would end the test, and run treats both in the same way
		}
		return send(c, op, b)
	}
	other, c := s.dial(nil), s.dial(nil)
	asks(t, c, websocket.MessageText, "a")
	require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("panic")))
	_, _, err := c.Read(t.Context())
	require.Equal(t, websocket.StatusInternalError, websocket.CloseStatus(err), err)
	asks(t, other, websocket.MessageText, "b")
}

// TestMessagesAreConserved sends messages of many connections, several at once, with and without pauses. Each connection gets the same bytes
// back, in the same order.
func TestMessagesAreConserved(t *testing.T) {
	conns, each := 200, 500
	if testing.Short() {
		conns, each = 40, 100
	}
	for i, kind := range kinds[:3] {
		t.Run(kind, func(t *testing.T) {
			s, each := open(t, kind), each
			if i > 0 {
				each /= 10
			}
			var wg sync.WaitGroup
			failures := make(chan error, conns)
			for i := range conns {
				c := s.raw()
				wg.Go(func() { failures <- converse(c, i, each) })
			}
			wg.Wait()
			for range conns {
				require.NoError(t, <-failures)
			}
			s.parks()
		})
	}
}

// converse sends messages in bursts, cuts some of them, and compares the answers.
func converse(c net.Conn, id, messages int) error {
	for k := 0; k < messages; {
		burst := min(1+(id+k)%7, messages-k)
		var out bytes.Buffer
		for i := range burst {
			text := fmt.Sprint(id, " ", k+i, strings.Repeat("x", (id*k)%300))
			_ = ws.WriteFrame(&out, ws.MaskFrame(ws.NewTextFrame([]byte(text))))
		}
		b := out.Bytes()
		if cut := (id * 31 % (len(b) - 1)) + 1; k%5 == 0 {
			if _, err := c.Write(b[:cut]); err != nil {
				return err
			}
			runtime.Gosched()
			b = b[cut:]
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
		for i := range burst {
			want := fmt.Sprint(id, " ", k+i, strings.Repeat("x", (id*k)%300))
			got, err := wsutil.ReadServerText(c)
			if err != nil {
				return err
			}
			if string(got) != want {
				return errors.New("a message is lost: " + string(got) + " instead of " + want)
			}
		}
		k += burst
	}
	return nil
}
