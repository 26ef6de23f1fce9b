package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// The limits of a connection.
const (
	maxMessage  = 64 << 10
	idleTime    = 10 * time.Minute // without a byte: a client that means to stay longer sends pings
	messageTime = 10 * time.Second // from the first byte of a message to the end of its answer
	goodbyeTime = time.Second      // for the close frame of a server that shuts down
)

var (
	errTooBig   = errors.New("the message is too big")
	errShutdown = errors.New("the hub shuts down")
	errPanic    = errors.New("the server has failed") // a panic or an exit of the function answer
)

// A hub serves WebSocket connections. It is a handler of any http.Server. While a connection waits for a message, it is parked: its
// ReadableOp waits in the loop, without a goroutine, a task or a buffer. The bytes of a message give it a task of the loop.
type hub struct {
	loop        *eventloop.Loop
	answer      func(ctx context.Context, c io.Writer, op ws.OpCode, message []byte) error // runs in a task of the loop
	idle, whole time.Duration                                                              // idleTime and messageTime

	ctx  context.Context // ends when the hub shuts down
	stop context.CancelCauseFunc

	mu   sync.Mutex
	shut bool
	open sync.WaitGroup // counts connections; an Add holds mu
}

func newHub(loop *eventloop.Loop, answer func(context.Context, io.Writer, ws.OpCode, []byte) error) *hub {
	h := &hub{loop: loop, answer: answer, idle: idleTime, whole: messageTime}
	h.ctx, h.stop = cancel.New(context.Background())
	return h
}

// echo is the answer of this program.
func echo(_ context.Context, c io.Writer, op ws.OpCode, message []byte) error {
	return send(c, op, message)
}

// send sends a frame in one Write, so that frames of several tasks are not mixed.
func send(c io.Writer, op ws.OpCode, payload []byte) error {
	b, err := ws.CompileFrame(ws.NewFrame(op, true, payload))
	if err == nil {
		_, err = c.Write(b)
	}
	return err
}

// ServeHTTP upgrades a request, parks the connection and returns. So the goroutine and the buffers of net/http are free again.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		http.Error(w, "the server shuts down", http.StatusServiceUnavailable)
		return
	}
	hijacked, rw, _, err := ws.UpgradeHTTP(r, w)
	if err != nil { // the client has an answer
		h.open.Done()
		return
	}
	ahead, _ := rw.Reader.Peek(rw.Reader.Buffered()) // net/http has read this already
	ahead = bytes.Clone(ahead)
	c, err := onLoop(h.loop, hijacked)
	if errors.Is(err, errors.ErrUnsupported) {
		h.stay(hijacked, ahead)
		return
	}
	if err != nil {
		h.end(hijacked, err)
		return
	}
	if len(ahead) == 0 {
		h.park(c)
	} else if h.loop.Go(func() { h.run(c, io.MultiReader(bytes.NewReader(ahead), c)) }) != nil {
		h.end(c, errShutdown)
	}
}

// onLoop moves a connection of net/http to the loop. It returns errors.ErrUnsupported if the connection cannot leave its goroutine, as
// over TLS.
func onLoop(loop *eventloop.Loop, c net.Conn) (*eventloop.Conn, error) {
	if own, ok := c.(*eventloop.Conn); ok { // the http.Server has a listener of a loop
		return own, nil
	}
	if _, ok := c.(*tls.Conn); ok {
		return nil, errors.ErrUnsupported
	}
	below := c
	if k, ok := c.(interface{ NetConn() net.Conn }); ok { // a connection of httppark
		below = k.NetConn()
	}
	k, ok := below.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errors.ErrUnsupported
	}
	f, err := k.File()
	if err != nil {
		return nil, err
	}
	own, err := loop.Adopt(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	_ = c.Close() // the loop has a descriptor of its own
	return own, nil
}

func (h *hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		return false
	}
	h.open.Add(1)
	return true
}

// park makes run serve c once there are bytes, the client has closed, or c has been idle for too long.
func (h *hub) park(c *eventloop.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(h.idle))
	suspend.Then(h.ctx, c.ReadableOp(), tasks{h.loop}, func(_ struct{}, err error) {
		if err != nil && !errors.Is(err, errors.ErrUnsupported) { // without epoll, a connection keeps its task
			h.end(c, errShutdown)
			return
		}
		h.run(c, c)
	})
}

// tasks is an Executor that runs continuations as tasks, which may suspend.
type tasks struct{ suspend.Spawner }

func (t tasks) Execute(f func()) error { return t.Go(f) }

// run serves c until c waits for the next message.
func (h *hub) run(c *eventloop.Conn, from io.Reader) {
	err := errPanic
	defer func() {
		if err != nil {
			h.end(c, err)
		} else {
			h.park(c)
		}
	}()
	err = h.serve(c, from)
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// serve answers the messages that have arrived. If the end of a message is missing, serve waits for it, at most for the time whole. So a
// client that sends half a frame costs a task until then.
func (h *hub) serve(c net.Conn, from io.Reader) error {
	in := readers.Get().(*bufio.Reader)
	defer readers.Put(in)
	in.Reset(from)
	defer in.Reset(nil)
	if _, err := in.Peek(1); err != nil {
		return err
	}
	control := wsutil.ControlFrameHandler(c, ws.StateServerSide)
	r := wsutil.Reader{Source: in, State: ws.StateServerSide, CheckUTF8: true, OnIntermediate: control}
	for in.Buffered() > 0 {
		if err := c.SetDeadline(time.Now().Add(h.whole)); err != nil {
			return err
		}
		f, err := r.NextFrame()
		if err != nil {
			return err
		}
		if f.OpCode.IsControl() {
			err = control(f, &r)
		} else {
			err = h.message(c, f.OpCode, &r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hub) message(c io.Writer, op ws.OpCode, r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxMessage+1)) // all fragments, and the control frames between them
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return errTooBig
	}
	return h.answer(h.ctx, c, op, b)
}

// stay serves c on this goroutine.
func (h *hub) stay(c net.Conn, ahead []byte) {
	_ = c.SetReadDeadline(time.Now().Add(h.idle))
	stop := cancel.AfterFunc(h.ctx, func() { say(c, errShutdown) })
	defer stop()
	err := errPanic
	defer func() { h.end(c, err) }()
	err = h.serve(c, io.MultiReader(bytes.NewReader(ahead), c))
	for err == nil {
		_ = c.SetReadDeadline(time.Now().Add(h.idle))
		err = h.serve(c, c)
	}
}

// end tells the client why, and closes c.
func (h *hub) end(c net.Conn, why error) {
	defer h.open.Done()
	say(c, why)
}

func say(c net.Conn, why error) {
	status := ws.StatusCode(0)
	var protocol ws.ProtocolError
	switch {
	case errors.Is(why, errShutdown):
		status = ws.StatusGoingAway
	case errors.Is(why, errPanic):
		status = ws.StatusInternalServerError
	case errors.Is(why, errTooBig):
		status = ws.StatusMessageTooBig
	case errors.Is(why, wsutil.ErrInvalidUTF8):
		status = ws.StatusInvalidFramePayloadData
	case errors.As(why, &protocol):
		status = ws.StatusProtocolError
	}
	if status != 0 {
		_ = c.SetWriteDeadline(time.Now().Add(goodbyeTime))
		_ = send(c, ws.OpClose, ws.NewCloseFrameBody(status, why.Error()))
	}
	_ = c.Close()
}

// Shutdown closes the parked connections at once, and the others after their current messages. It waits for them until ctx is done. An
// http.Server does not wait for connections that have left it: shut down the http.Server first, and then the hub.
func (h *hub) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.shut = true
	h.mu.Unlock()
	h.stop(errShutdown)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.open.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
