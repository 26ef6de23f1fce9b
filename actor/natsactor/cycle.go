package natsactor

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor/internal/carrier"
)

// How a cycle of Asks is found. This is the edge chasing of Chandy, Misra and Haas (1983), in the messages that are sent anyway.
//
// The actor served at a asks b, and the actor served at b asks a. A chain says who waits for a request: the Ask and the subject of its
// actor, the Ask that waits for that one in turn, and so on.
//
//  1. A Dial whose Ask comes from a served actor adds this Ask to the chains of all requests that the actor's servers hold, because
//     their Asks now wait for it, and sends them with the request (askerOf).
//  2. A server that receives a request looks in its chains for the Ask in which its own actor waits. If it is there, the actor would
//     never come to this request, and the server refuses it (cycleLocked).
//  3. Two Asks that are sent at the same time have no chains that tell of each other. So with each question whether a server holds a
//     request (examineAsked), the Dial sends the request's chains as they are by then, as a probe. The server that holds the request
//     keeps them, and does step 2 again. A cycle of n actors is known after n-1 probes at most.
//
// An AskLater has no chains, because its actor may reply while it waits. A request that the actor has passed on to another actor of its
// process has none either, because that one may reply. So a cycle with a step between two actors of one process is not found.

const (
	longestChain = 16 // Asks; a longer chain is not sent
	mostChains   = 32 // of one request
)

// An asker is an Ask in which a served actor waits.
type asker struct {
	at  []*Server // the servers of the actor
	key string    // askHeader of the request
	q   carrier.Carrier
}

// serving holds the servers of this process that are not closed, or owe answers.
var serving struct {
	sync.Mutex
	all map[*Server]struct{}
}

// askerOf returns the asker of q, and adds its chains to msg. It returns nil if no served actor waits for q.
func askerOf(q carrier.Carrier, msg *nats.Msg) *asker {
	goroutine := q.Asker()
	if goroutine == 0 {
		return nil
	}
	by := &asker{key: msg.Header.Get(askHeader), q: q}
	serving.Lock()
	for s := range serving.all {
		if carrier.Goroutine(s.actor) == goroutine {
			by.at = append(by.at, s)
		}
	}
	serving.Unlock()
	if len(by.at) == 0 {
		return nil
	}
	for _, s := range by.at {
		s.mu.Lock()
		if q.Waited() { // otherwise the actor may wait in its next Ask already
			s.asking = by
		}
		s.mu.Unlock()
	}
	msg.Header[chainHeader] = by.chains()
	return by
}

// chains returns the chains of the asker's request.
func (by *asker) chains() []string {
	link := by.key + " " + by.at[0].subject
	all := []string{link}
	for _, s := range by.at {
		s.mu.Lock()
		for _, r := range s.requests {
			if !s.owes(r) {
				continue
			}
			for _, c := range r.chains {
				if strings.Count(c, " ") < 2*longestChain-2 && len(all) < mostChains {
					all = append(all, c+" "+link)
				}
			}
		}
		s.mu.Unlock()
	}
	return all
}

// owes reports whether the request r waits for the server's actor, and not for another actor to which that one has passed it on.
func (s *Server) owes(r *request) bool { return r.q == nil || r.q.Waited() && r.q.Home(s.actor) }

// done says that the actor waits no longer. by may be nil.
func (by *asker) done() {
	if by == nil {
		return
	}
	for _, s := range by.at {
		s.mu.Lock()
		if s.asking == by {
			s.asking = nil
		}
		s.mu.Unlock()
	}
}

// cycleLocked returns an error that names the cycle if the server's actor waits for the request with these chains.
func (s *Server) cycleLocked(chains []string) error {
	if s.asking == nil || !s.asking.q.Waited() { // a cancelled Ask has not been removed yet
		return nil
	}
	for _, c := range chains {
		links := strings.Fields(c)
		for i := 0; i+1 < len(links); i += 2 {
			if links[i] != s.asking.key {
				continue
			}
			names := ""
			for ; i+1 < len(links); i += 2 {
				names += links[i+1] + " -> "
			}
			return fmt.Errorf("%w: %s%s", ErrCycle, names, s.subject)
		}
	}
	return nil
}

// probe handles the chains of a request that a server may hold.
func (s *Server) probe(msg *nats.Msg) {
	key := msg.Header.Get(askHeader)
	s.mu.Lock()
	r, held := s.requests[key]
	var err error
	if held {
		r.chains = msg.Header[chainHeader]
		if s.owes(r) {
			err = s.cycleLocked(r.chains)
		}
	}
	s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%w, and %w", err, ErrInDoubt) // the actor will still handle the request
		s.refuse(&nats.Msg{Reply: r.reply, Header: nats.Header{askHeader: {key}}}, err)
	}
}
