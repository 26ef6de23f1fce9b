package httppark

import (
	"container/heap"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A lot is where the connections of a listener are parked. It is the listener that http.Server sees: Accept returns new
// connections, and parked ones that have bytes. -A> is acceptAll, -S> a goroutine of http.Server, -P> pollAll, -T> the timer, -C>
// a Close.
//
//	-A>                 serving   Accept returns the connection
//	serving  -S>        leaving   a Read has waited for ParkAfter: http.Server gets the end of the stream
//	leaving  -S>        parked    http.Server closes the connection, and its goroutine ends
//	parked   -P>        serving   there are bytes: Accept returns the connection again
//	parked   -T>        closed    the deadline that http.Server has set for an idle connection has passed
//	parked   -C>        closed    the lot or the connection is closed
//	serving  -S>        closed    http.Server or a handler closes the connection
//	serving  -S>        hijacked
//
// Invariant: a connection has a place while it is parked, and the epoll instance reports it only then. Whoever changes the state
// from parked, under the mutex, serves or closes the connection.
type lot struct {
	net.Listener
	server *Server
	poll   *poller
	ready  chan accepted
	done   chan struct{} // closed by Close

	once sync.Once // the Close

	mu     sync.Mutex
	closed bool
	fresh  map[*tls.Conn]struct{} // handshakes under way
	served []*conn                // in no order
	places []parkable
	free   []int32
	serial int32 // the number of times that a connection was parked
	parked int
	dues   dues
	timer  *time.Timer // runs expire
	base   time.Time   // the origin of deadlines

	ticks   atomic.Int64 // counts from 1, four times in ParkAfter while there is a connection that is served
	ticker  *time.Timer  // runs tick
	ticking bool         // guarded by mu
}

type accepted struct {
	c   net.Conn
	err error
}

func newLot(s *Server, ln net.Listener, p *poller) *lot {
	l := &lot{Listener: ln, server: s, poll: p, ready: make(chan accepted), done: make(chan struct{}), fresh: map[*tls.Conn]struct{}{}, base: time.Now()}
	l.ticks.Store(1)
	l.timer = time.AfterFunc(time.Hour, l.expire)
	l.timer.Stop()
	l.ticker = time.AfterFunc(time.Hour, l.tick)
	l.ticker.Stop()
	return l
}

// Accept implements net.Listener. After a Close it closes the parked connections before it returns, because http.Server waits
// for it in Shutdown and Close.
func (l *lot) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.c, a.err
	case <-l.done:
		l.closeParked(true)
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. http.Server calls it while it holds a lock, so it calls no function of the user.
func (l *lot) Close() (err error) {
	l.once.Do(func() {
		close(l.done)
		err = l.Listener.Close()
	})
	return err
}

// acceptAll accepts connections until the listener fails for good. It waits after a temporary error, as http.Server does. If it passed
// the error on, http.Server would wait, and would meanwhile accept no parked connection either.
func (l *lot) acceptAll() {
	const first, last = 5 * time.Millisecond, time.Second
	for delay := first; ; {
		c, err := l.Listener.Accept()
		if t, ok := err.(interface{ Temporary() bool }); ok && t.Temporary() {
			l.server.logf("http: Accept error: %v; retrying in %v", err, delay)
			select {
			case <-time.After(delay):
			case <-l.done:
				return
			}
			delay = min(2*delay, last)
			continue
		}
		if err != nil {
			select {
			case l.ready <- accepted{nil, err}:
			case <-l.done:
			}
			return
		}
		delay = first
		if t, ok := c.(*tls.Conn); ok {
			go l.shake(t)
			continue
		}
		if d, ok := c.(syscall.Conn); ok {
			c = l.wrap(c, d)
		}
		l.give(c)
	}
}

// shake performs the handshake of t, and gives t to http.Server.
func (l *lot) shake(t *tls.Conn) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.fresh[t] = struct{}{}
	}
	l.mu.Unlock()
	if closed {
		_ = t.NetConn().Close()
		return
	}
	var c net.Conn = t
	http1 := handshake(t, l.server.handshakeTimeout())
	if d, ok := t.NetConn().(syscall.Conn); ok && http1 {
		c = l.wrap(t, d)
	}
	l.mu.Lock()
	delete(l.fresh, t)
	l.mu.Unlock()
	l.give(c)
}

// give lets Accept return c, or closes c after a Close.
func (l *lot) give(c net.Conn) {
	if k, ours := c.(parkable); ours {
		l.serveConn(k.base())
	}
	select {
	case l.ready <- accepted{c, nil}:
	case <-l.done:
		_ = c.Close()
		if k, ours := c.(parkable); ours && k.base().known {
			l.tell(k, http.StateClosed)
		}
	}
}

// pollAll gives back the connections that have bytes, until a Close.
func (l *lot) pollAll() {
	for {
		events, err := l.poll.wait()
		if err != nil {
			return
		}
		for _, e := range events {
			if k := l.claim(e); k != nil {
				l.give(k)
			}
		}
	}
}

// claim returns the parked connection that an event is about, which is serving from here on. It returns nil if the connection was
// closed in between.
func (l *lot) claim(e event) parkable {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.places[e.place]
	if k == nil || k.base().state != parked || k.base().serial != e.serial {
		return nil
	}
	l.leaveLocked(k.base())
	return k
}

// serveConn prepares c for a new goroutine of http.Server.
func (l *lot) serveConn(c *conn) {
	if c.serial == 0 || c.due.Load() != 0 { // otherwise the Read before the park has removed the deadline
		_ = c.SetReadDeadline(time.Time{})
	}
	c.full = 0
	c.word.Store(idle)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.state, c.at = serving, int32(len(l.served))
	l.served = append(l.served, c)
	if !l.ticking {
		l.ticking = true
		l.ticker.Reset(l.server.parkAfter() / 4)
	}
}

// tick parks the connections that have been idle for ParkAfter.
func (l *lot) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.ticks.Add(1)
	for _, c := range l.served {
		c.callReader(now, 5) // the first of these ticks may have come at once
	}
	if l.ticking = len(l.served) > 0; l.ticking {
		l.ticker.Reset(l.server.parkAfter() / 4)
	}
}

// unserveLocked takes c out of the list of served connections.
func (l *lot) unserveLocked(c *conn) {
	last := len(l.served) - 1
	l.served[c.at] = l.served[last]
	l.served[c.at].at = c.at
	l.served[last] = nil
	l.served, c.at = l.served[:last], -1
}

// forgetLocked ends the management of c, which is not parked.
func (l *lot) forgetLocked(c *conn, to state) {
	if c.state == serving || c.state == leaving {
		l.unserveLocked(c)
		c.state = to
	}
	l.vacateLocked(c)
}

// parkLocked parks k. It returns false if the lot is closed or the system refuses.
func (l *lot) parkLocked(k parkable) bool {
	if l.closed {
		return false
	}
	c := k.base()
	if c.place < 0 {
		if n := len(l.free); n > 0 {
			c.place, l.free = l.free[n-1], l.free[:n-1]
			l.places[c.place] = k
		} else {
			c.place = int32(len(l.places))
			l.places = append(l.places, k)
		}
	}
	l.serial++ // an event of an earlier time is about another serial number, here and with another connection in this place
	c.serial = l.serial
	if l.poll.watch(c.raw, event{c.place, c.serial}, c.watched) != nil {
		return false
	}
	l.unserveLocked(c)
	c.watched, c.state = true, parked
	l.parked++
	l.setDueLocked(c)
	return true
}

// setDue makes the lot close c at its new deadline, if c is parked.
func (l *lot) setDue(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.state == parked {
		l.setDueLocked(c)
	}
}

func (l *lot) setDueLocked(c *conn) {
	at := c.due.Load()
	if c.at < 0 && at == 0 {
		return
	}
	if c.at >= 0 {
		heap.Remove(&l.dues, int(c.at))
	}
	if at != 0 {
		heap.Push(&l.dues, due{at, l.places[c.place]})
	}
	l.setTimerLocked()
}

// leaveLocked ends the time of c in the lot.
func (l *lot) leaveLocked(c *conn) {
	c.state = closed // until it is served
	l.parked--
	if c.at >= 0 {
		heap.Remove(&l.dues, int(c.at))
		l.setTimerLocked()
	}
}

// vacateLocked frees the place of c, which is never parked again.
func (l *lot) vacateLocked(c *conn) {
	if c.place >= 0 {
		l.places[c.place] = nil
		l.free = append(l.free, c.place)
		c.place = -1
	}
}

func (l *lot) setTimerLocked() {
	if len(l.dues) == 0 {
		l.timer.Stop()
		return
	}
	l.timer.Reset(time.Duration(l.dues[0].at) - time.Since(l.base))
}

// expire closes the parked connections whose deadline has passed.
func (l *lot) expire() {
	var over []parkable
	l.mu.Lock()
	for now := int64(time.Since(l.base)); len(l.dues) > 0 && l.dues[0].at <= now; {
		over = append(over, l.takeParkedLocked(l.dues[0].k))
	}
	l.mu.Unlock()
	for _, k := range over {
		l.end(k)
	}
}

// closeParked closes the parked connections. With the argument forGood, connections are not parked any more.
func (l *lot) closeParked(forGood bool) {
	var over []parkable
	l.mu.Lock()
	l.closed = l.closed || forGood
	for _, k := range l.places {
		if k != nil && k.base().state == parked {
			over = append(over, l.takeParkedLocked(k))
		}
	}
	if forGood {
		for c := range l.fresh {
			_ = c.NetConn().Close()
		}
	}
	l.mu.Unlock()
	for _, k := range over {
		l.end(k)
	}
}

// takeParkedLocked takes k, which is parked, out of the lot. The caller must call end for it.
func (l *lot) takeParkedLocked(k parkable) parkable {
	l.leaveLocked(k.base())
	l.vacateLocked(k.base())
	return k
}

// end closes k, which is not served, and tells ConnState.
func (l *lot) end(k parkable) {
	end := func() {
		_ = k.base().Conn.Close()
		l.tell(k, http.StateClosed)
	}
	if _, ok := k.(*tlsConn); ok { // says goodbye to its peer, which may take time
		go end()
		return
	}
	end()
}

// tell tells the ConnState of the user.
func (l *lot) tell(c net.Conn, state http.ConnState) {
	if f := l.server.changed; f != nil {
		f(c, state)
	}
}

// clear releases what the lot holds. No goroutine of the lot is left by then.
func (l *lot) clear() {
	l.closeParked(true)
	l.timer.Stop()
	l.ticker.Stop()
}

func (l *lot) parkedNow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.parked
}
