package cores_test

import "time"

// A server answers a client that is one thread, as in row http-loop of bench: with reactors, which have their own connections, or with
// goroutines, whose requests any processor takes.

// A goroutine reads in vain once for each request, and is woken. The ratios of the times are those of http-loop: with eight processors the client is
// the limit of goroutines, and on two processors, which the client shares, the loop takes .89 of the time.
const (
	perClient    = 6900 * time.Nanosecond
	perReactor   = 10000 * time.Nanosecond
	perGoroutine = 12100 * time.Nanosecond
)

// A station is a thread, or several, with a queue. It sleeps when the queue is empty.
type station struct {
	m       *machine
	take    time.Duration
	awake   int
	threads int
	queue   []int // connections
	next    func(conn int) *station
	served  int
}

// add puts a connection in the queue, and returns what it takes from the caller.
func (s *station) add(conn int) time.Duration {
	s.queue = append(s.queue, conn)
	if s.awake == s.threads {
		return 0
	}
	s.awake++
	s.m.after(wakeUp, s.serve)
	return futex
}

func (s *station) serve() {
	if len(s.queue) == 0 {
		s.awake--
		return
	}
	conn := s.queue[0]
	s.queue = s.queue[1:]
	s.m.after(s.take, func() {
		s.served++
		s.m.after(s.next(conn).add(conn), s.serve)
	})
}

// serving returns the time for each request of 1000 connections, which the given number of reactors, or of processors for goroutines, serve.
func serving(clients, reactors, processors int) time.Duration {
	const settled, requests = 5_000, 20_000
	m := &machine{}
	client := &station{m: m, take: perClient, threads: clients}
	back := func(int) *station { return client }
	var servers []*station
	for range reactors {
		servers = append(servers, &station{m: m, take: perReactor, threads: 1, next: back})
	}
	if reactors == 0 {
		servers = []*station{{m: m, take: perGoroutine, threads: processors, next: back}}
	}
	client.next = func(conn int) *station { return servers[conn%len(servers)] }
	for conn := range 1000 {
		client.add(conn)
	}
	began := time.Duration(0)
	for client.served < settled+requests {
		if m.step(); client.served <= settled {
			began = m.now
		}
	}
	return (m.now - began) / requests
}
