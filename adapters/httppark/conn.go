package httppark

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A conn is a connection as http.Server sees it. The same conn is served and parked in turn; see lot.
type conn struct {
	net.Conn
	lot *lot
	raw syscall.RawConn

	// Between two requests, and before the first one, the next Read is idle: it may end with a park. While it waits, the word is
	// the time at which it began, in ticks of the lot. -R> is the goroutine that reads, -T> a tick.
	//
	//	busy    -R> idle    http.Server has reported that it waits for a request
	//	idle    -R> ticks   the Read begins
	//	ticks   -R> busy    the Read has bytes, or it has failed
	//	ticks   -T> called  the Read has waited for ParkAfter: a deadline in the past ends it
	//	called  -R> busy    the Read restores the deadline, and has bytes, or is not between two requests
	//	called  -R> gone    the Read restores the deadline, and says that the client has closed: the Close that follows parks the conn
	//	gone    -R> busy    http.Server reads again instead: the conn stays
	//
	// A tick holds mu from the change of the word until the deadline is set, and the Read takes mu before it restores the deadline.
	word atomic.Int64
	mu   sync.Mutex
	due  atomic.Int64 // the read deadline that http.Server has set, since lot.base; 0 means none

	// full is the length of the buffer of the first Read since the conn is served. http.Server has nothing in this buffer then.
	// Only the goroutine that reads uses it.
	full int32

	// blank means that the bytes that were read last end with an empty line: no part of a later header has been read. Only the goroutine
	// that reads uses it.
	blank bool

	// lot.mu protects the fields below.
	place   int32 // in lot.places, or -1
	serial  int32 // of the last time that the conn was parked
	at      int32 // in lot.served while the conn is served; in lot.dues while it is parked, or -1 there
	swallow int32 // the number of times that http.Server will report a parked conn as closed
	state   state
	known   bool // ConnState was called for the conn
	watched bool // the epoll instance has the descriptor
}

const (
	busy   int64 = 0
	idle   int64 = -1
	called int64 = -2
	gone   int64 = -3
)

type state uint8

const (
	serving state = iota
	leaving
	parked
	closed
	hijacked
)

// A parkable is a *conn or a *tlsConn.
type parkable interface {
	net.Conn
	base() *conn
}

// A tlsConn is a conn over TLS.
type tlsConn struct{ conn }

// ConnectionState gives requests their field TLS.
func (c *tlsConn) ConnectionState() tls.ConnectionState { return c.Conn.(*tls.Conn).ConnectionState() }

func (c *conn) base() *conn { return c }

// wrap returns a conn for c. The descriptor of d is that of c, or of the connection below c if c is a *tls.Conn.
func (l *lot) wrap(c net.Conn, d syscall.Conn) net.Conn {
	raw, err := d.SyscallConn()
	if err != nil {
		return c
	}
	k := parkable(&conn{})
	if _, ok := c.(*tls.Conn); ok {
		k = &tlsConn{}
	}
	b := k.base()
	b.Conn, b.lot, b.raw, b.place, b.state = c, l, raw, -1, closed
	return k
}

// NetConn returns the connection that the listener has accepted. Set no deadline there: a parked conn would not see it, and the
// next park of a conn that is served would replace it.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	switch c.word.Load() {
	case idle:
		return c.readIdle(p)
	case gone:
		c.stay()
	}
	return c.read(p)
}

func (c *conn) read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.blank = bytes.HasSuffix(p[:n], emptyLine)
	}
	return n, err
}

var emptyLine = []byte("\r\n\r\n")

// readIdle is a Read between two requests, or before the first one. If no byte comes within ParkAfter, it tells http.Server that
// the client has closed.
func (c *conn) readIdle(p []byte) (int, error) {
	first := c.full == 0
	if first {
		c.full = int32(len(p))
	}
	if len(p) < int(c.full) { // there are bytes of the next request before p
		c.word.Store(busy)
		return c.read(p)
	}
	began := c.lot.ticks.Load()
	c.word.Store(began)
	n, err := c.read(p)
	if c.word.CompareAndSwap(began, busy) {
		return n, err
	}
	c.mu.Lock()
	_ = c.Conn.SetReadDeadline(c.lot.deadline(c.due.Load()))
	c.word.Store(busy)
	c.mu.Unlock()
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if (first || c.blank || betweenRequests()) && c.leave() {
		return 0, io.EOF
	}
	return c.read(p)
}

// callReader ends the Read under way if it has waited since the time began.
func (c *conn) callReader(now, after int64) {
	began := c.word.Load()
	if began <= 0 || now-began < after {
		return
	}
	c.mu.Lock()
	if c.word.CompareAndSwap(began, called) {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
	c.mu.Unlock()
}

// betweenRequests reports whether http.Server waits for the first byte of a request. It does so in Peek, while its buffer is
// empty. Elsewhere it may have read a part of a request already: a client may send the next request before it has the answer to
// the last one, and such a conn is idle in the sense of ConnState. The look takes a microsecond, and is
// not needed after an empty line, with which each header ends.
func betweenRequests() bool {
	var pcs callers
	n := runtime.Callers(2, pcs[:])
	if waiting := peeking.Load(); waiting != nil && pcs == *waiting {
		return true // looking up the names takes longer than all the rest of parking
	}
	frames := runtime.CallersFrames(pcs[:n])
	peeks := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "bufio.(*Reader).Peek":
			peeks = true
		case strings.HasPrefix(f.Function, "net/http.(*conn)."):
			if peeks = peeks && f.Function == "net/http.(*conn).serve"; peeks {
				found := pcs // pcs itself stays on the stack
				peeking.Store(&found)
			}
			return peeks
		}
		if !more {
			return false
		}
	}
}

// callers are the program counters of a goroutine's calls, from the innermost on. Equal ones have equal names.
type callers [16]uintptr

// peeking holds the callers of the last Read that betweenRequests has found in Peek.
var peeking atomic.Pointer[callers]

// leave makes the next Close park c.
func (c *conn) leave() bool {
	c.lot.mu.Lock()
	defer c.lot.mu.Unlock()
	if c.state != serving || c.lot.closed {
		return false
	}
	c.state = leaving
	c.word.Store(gone)
	return true
}

// stay makes the next Close close c.
func (c *conn) stay() {
	c.lot.mu.Lock()
	defer c.lot.mu.Unlock()
	c.word.Store(busy)
	if c.state == leaving {
		c.state = serving
	}
}

// Close parks c if a Read has announced it. Otherwise it closes c, even if c is parked.
func (c *conn) Close() error { return c.close(c) }

// Close is like the Close of a conn.
func (c *tlsConn) Close() error { return c.close(c) }

func (c *conn) close(k parkable) error {
	l := c.lot
	l.mu.Lock()
	switch c.state {
	case leaving:
		if l.parkLocked(k) {
			c.swallow++
			l.mu.Unlock()
			return nil
		}
	case parked:
		l.takeParkedLocked(k)
		l.mu.Unlock()
		l.end(k)
		return nil
	}
	l.forgetLocked(c, closed)
	l.mu.Unlock()
	return c.Conn.Close()
}

// changes is called for each change of state that http.Server reports. It reports whether the change is one of the connection,
// and not only of its goroutine.
func (c *conn) changes(to http.ConnState) (new bool) {
	switch to {
	case http.StateIdle:
		c.word.Store(idle)
		return true
	case http.StateActive:
		c.word.Store(busy)
		return true
	}
	c.lot.mu.Lock()
	defer c.lot.mu.Unlock()
	switch to {
	case http.StateNew:
		new, c.known = !c.known, true
		return new
	case http.StateHijacked:
		c.lot.forgetLocked(c, hijacked)
	case http.StateClosed:
		if c.swallow > 0 {
			c.swallow--
			return false
		}
	}
	return true
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(t, c.Conn.SetReadDeadline)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadline(t, c.Conn.SetDeadline) }

func (c *conn) setDeadline(t time.Time, set func(time.Time) error) error {
	at := int64(0)
	if !t.IsZero() {
		at = max(1, int64(t.Sub(c.lot.base)))
	}
	c.mu.Lock() // a Read may be about to restore the previous deadline
	// The store comes before the load of the word. It pairs with the load in setDueLocked, which follows the store of gone.
	c.due.Store(at)
	err := set(t)
	c.mu.Unlock()
	if c.word.Load() == gone {
		c.lot.setDue(c)
	}
	return err
}

// deadline returns the time of a deadline since l.base.
func (l *lot) deadline(at int64) (t time.Time) {
	if at != 0 {
		t = l.base.Add(time.Duration(at))
	}
	return t
}

// ReadFrom implements io.ReaderFrom: a TCP connection sends files without copying them.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if f, ok := c.Conn.(io.ReaderFrom); ok {
		return f.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// CloseWrite shuts down the writing side. http.Server calls it before it closes a connection whose client still sends.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SyscallConn implements syscall.Conn.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }
