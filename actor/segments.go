package actor

import (
	"math/bits"
	"sync"
)

// A segment is a part of a mailbox: up to 64 messages, in the order of their arrival. A message keeps its slot until it is received, so
// a place stays valid while the messages around it are removed.
type segment[M any] struct {
	next, prev *segment[M]
	live       uint64 // bit i is set if slots[i] has a message that is not received
	busy       uint64 // the live messages that a function is handling
	slots      []M    // never grows beyond its capacity; a slot that is not live is zero
	notes      map[int]note
}

// A note holds rarely needed facts about a message.
type note struct {
	q         pending // the request that an Adapt has wrapped
	uncounted bool    // the message does not count towards Cap
}

const (
	firstSegment = 4  // number of slots; an empty mailbox keeps no larger segment while its owner waits
	lastSegment  = 64 // number of slots: one for each bit of segment.live
	manyHoles    = 4 * lastSegment
)

// A mail is a sequence of messages. The zero mail is empty and uses no memory.
//
// A mailbox has two mails. Senders append to Inbox.arrived, under the guard. While the owner runs, no other task uses Inbox.mail. The
// owner moves all new messages to Inbox.mail in one step, so that it locks once per batch.
type mail[M any] struct {
	first, last *segment[M]
	count       int // the number of messages
}

// A stock is the owner's mail, from which messages are removed.
type stock[M any] struct {
	mail[M]
	holes  int32 // slots whose messages have been removed
	turns  uint8 // messages since the owner's last Yield
	spins  uint8 // turns of the owner's Loop since the last message
	counts bool  // there is a Cap; never changes
}

// A place is the position of one message. The zero place comes before all messages.
type place[M any] struct {
	seg *segment[M]
	at  int
}

func (p place[M]) message() M { return p.seg.slots[p.at] }

// inHand reports whether a function is handling the message at p.
func (p place[M]) inHand() bool { return p.seg != nil && p.seg.busy>>p.at&1 != 0 }

func (q *mail[M]) push(m M) {
	s := q.last
	if s == nil || len(s.slots) == cap(s.slots) {
		s = q.grow()
	}
	s.add(m)
	q.count++
}

// annotate attaches n to the last message, unless n is zero.
func (q *mail[M]) annotate(n note) {
	if n == (note{}) {
		return
	}
	s := q.last
	if s.notes == nil {
		s.notes = map[int]note{}
	}
	s.notes[len(s.slots)-1] = n
}

func (s *segment[M]) add(m M) {
	n := len(s.slots)
	s.slots = s.slots[:n+1]
	s.slots[n] = m
	s.live |= 1 << (uint(n) & 63)
}

// grow appends a segment: a small segment to an empty mail, and otherwise a large segment.
func (q *mail[M]) grow() *segment[M] {
	var s *segment[M]
	if q.last == nil {
		x := new(struct { // the segment and its array are one allocation
			segment[M]
			array [firstSegment]M
		})
		x.slots = x.array[:0]
		s = &x.segment
	} else {
		s = spare[M]().Get().(*segment[M])
	}
	q.link(s)
	return s
}

// spares holds the empty large segments of all mailboxes, in a sync.Pool for each type of message. The garbage collector frees them
// after a burst of messages.
var spares sync.Map

func spare[M any]() *sync.Pool {
	key := (*segment[M])(nil)
	p, ok := spares.Load(key)
	if !ok {
		p, _ = spares.LoadOrStore(key, &sync.Pool{New: func() any {
			x := new(struct {
				segment[M]
				array [lastSegment]M
			})
			x.slots = x.array[:0]
			return &x.segment
		}})
	}
	return p.(*sync.Pool)
}

func (q *mail[M]) link(s *segment[M]) {
	if s.prev = q.last; s.prev != nil {
		s.prev.next = s
	} else {
		q.first = s
	}
	q.last = s
}

// after returns the first place behind p whose message can be received.
func (q *mail[M]) after(p place[M]) (place[M], bool) {
	s := p.seg
	if s == nil {
		s = q.first
	} else {
		if seen := s.open() & above(p.at); seen != 0 {
			return place[M]{s, bits.TrailingZeros64(seen)}, true
		}
		s = s.next
	}
	for ; s != nil; s = s.next {
		if seen := s.open(); seen != 0 {
			return place[M]{s, bits.TrailingZeros64(seen)}, true
		}
	}
	return place[M]{}, false
}

// open returns the bits of the messages in s that can be received.
func (s *segment[M]) open() uint64 { return s.live &^ s.busy }

// above returns a mask with the bits above i.
func above(i int) uint64 { return ^uint64(1) << (uint(i) & 63) }

// remove removes the message at p.
func (q *stock[M]) remove(p place[M]) {
	p.seg.clear(p.at)
	q.count--
	q.holes++
	if p.seg.live == 0 {
		q.unlinkEmpty(p.seg)
	}
}

func (s *segment[M]) clear(i int) {
	var zero M
	s.slots[i] = zero
	s.live &^= 1 << (uint(i) & 63)
	s.busy &^= 1 << (uint(i) & 63)
	if s.notes != nil {
		delete(s.notes, i)
	}
}

// unlinkEmpty unlinks s, which must be empty, unless s is the only segment.
func (q *stock[M]) unlinkEmpty(s *segment[M]) {
	q.holes -= int32(len(s.slots))
	s.slots, s.notes = s.slots[:0], nil
	if s.prev == nil && s.next == nil {
		return
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		q.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		q.last = s.prev
	}
	if s.prev, s.next = nil, nil; cap(s.slots) == lastSegment {
		spare[M]().Put(s)
	}
}

// rest releases the segment of an empty mail if the segment is large.
func (q *mail[M]) rest() {
	if s := q.first; s != nil && cap(s.slots) == lastSegment {
		q.giveUp()
	}
}

func (q *mail[M]) giveUp() {
	spare[M]().Put(q.first)
	q.first, q.last = nil, nil
}

// fetch moves all messages of another mail to the end of q. If q is empty, the two mails are swapped, so that the other mail has a
// segment for its next message. Otherwise a few messages are copied into free slots, and many messages are moved with their segments.
func (q *stock[M]) fetch(from *mail[M]) {
	s := from.first
	if from.count == 0 {
		return
	}
	if q.count == 0 {
		q.mail, *from = *from, q.mail
		return
	}
	if t := q.last; s.next == nil && s.notes == nil && len(t.slots)+len(s.slots) <= cap(t.slots) {
		for _, m := range s.slots {
			q.push(m)
		}
		clear(s.slots)
		s.live, s.slots, from.count = 0, s.slots[:0], 0
		return
	}
	s.prev = q.last
	s.prev.next = s
	q.last = from.last
	q.count += from.count
	*from = mail[M]{}
}

// compact rebuilds q without holes, which changes the places of messages. Otherwise a single message in each segment would keep all
// segments allocated.
func (q *stock[M]) compact() {
	dense := stock[M]{}
	for s := q.first; s != nil; s = s.next {
		for i, m := range s.slots {
			if s.live>>i&1 != 0 {
				dense.push(m)
				dense.annotate(s.notes[i])
			}
		}
	}
	q.mail, q.holes = dense.mail, 0
}

// inHand reports whether a function is handling any of the messages.
func (q *stock[M]) inHand() bool {
	for s := q.first; s != nil; s = s.next {
		if s.busy != 0 {
			return true
		}
	}
	return false
}

// sparse reports whether a call of compact is worthwhile. Its cost is amortised over the removals since the last call.
func (q *stock[M]) sparse() bool { return q.holes > manyHoles && int(q.holes) > 2*q.count }

// each calls f with every message, including messages that another function is handling.
func (q *mail[M]) each(f func(m M, n note)) {
	for s := q.first; s != nil; s = s.next {
		for i, m := range s.slots {
			if s.live>>i&1 != 0 {
				f(m, s.notes[i])
			}
		}
	}
}
