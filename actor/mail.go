package actor

import "math/bits"

// A segment is a stretch of a mailbox: up to 64 messages, in the order of their arrival. A message keeps its slot until it is
// received, so a place in a segment stays valid while others are taken out around it.
type segment[M any] struct {
	next, prev *segment[M]
	live       uint64 // bit i: slots[i] has a message that is not received
	busy       uint64 // the live ones with which a function is being called
	slots      []M    // never grows beyond its capacity; a slot that is not live is zero
}

const (
	firstSegment = 4  // slots
	lastSegment  = 64 // one for each bit
	idleSegment  = 16 // the most that an empty mailbox keeps while it waits
)

// A mail is a sequence of messages. The zero mail is empty and has no memory.
//
// A mailbox has two: senders append to the one, under the guard, and its owner fetches all of it at once into the other,
// which is the owner's alone. So a batch costs the owner one lock.
type mail[M any] struct {
	first, last *segment[M]
	count       int // messages
	holes       int // slots in these segments whose messages are gone
}

// A place is that of one message; the zero place is in front of all.
type place[M any] struct {
	seg *segment[M]
	at  int
}

func (p place[M]) message() M  { return p.seg.slots[p.at] }
func (p place[M]) bit() uint64 { return 1 << p.at }

func (q *mail[M]) push(m M) {
	s := q.last
	if s == nil || len(s.slots) == cap(s.slots) {
		s = q.grow()
	}
	s.live |= 1 << len(s.slots)
	s.slots = append(s.slots, m)
	q.count++
}

func (q *mail[M]) grow() *segment[M] {
	size := firstSegment
	if q.last != nil {
		size = min(4*cap(q.last.slots), lastSegment)
	}
	s := newSegment[M](size)
	q.link(s)
	return s
}

// newSegment returns an empty segment with its slots, in one piece of memory.
func newSegment[M any](size int) *segment[M] {
	switch size {
	case firstSegment:
		x := new(struct {
			segment[M]
			room [firstSegment]M
		})
		x.slots = x.room[:0]
		return &x.segment
	case idleSegment:
		x := new(struct {
			segment[M]
			room [idleSegment]M
		})
		x.slots = x.room[:0]
		return &x.segment
	default:
		x := new(struct {
			segment[M]
			room [lastSegment]M
		})
		x.slots = x.room[:0]
		return &x.segment
	}
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
	s, i := p.seg, p.at+1
	if s == nil {
		s, i = q.first, 0
	}
	for ; s != nil; s, i = s.next, 0 {
		if seen := (s.live &^ s.busy) >> i << i; seen != 0 {
			return place[M]{s, bits.TrailingZeros64(seen)}, true
		}
	}
	return place[M]{}, false
}

// remove takes the message at p out. If the segment is empty then, it leaves q and is returned.
func (q *mail[M]) remove(p place[M]) (empty *segment[M]) {
	s := p.seg
	var zero M
	s.slots[p.at] = zero
	s.live &^= p.bit()
	s.busy &^= p.bit()
	q.count--
	if s.live != 0 {
		q.holes++
		return nil
	}
	q.holes -= len(s.slots) - 1
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
	s.next, s.prev, s.slots = nil, nil, s.slots[:0]
	return s
}

// fetch appends all of from, which is empty then. A few messages are copied where there is room; otherwise their segments
// change hands.
func (q *mail[M]) fetch(from *mail[M]) {
	s := from.first
	if from.count == 0 {
		return
	}
	if t := q.last; t != nil && s.next == nil && len(t.slots)+len(s.slots) <= cap(t.slots) {
		for _, m := range s.slots {
			q.push(m)
		}
		clear(s.slots)
		s.live, s.slots, from.count = 0, s.slots[:0], 0
		return
	}
	if s.prev = q.last; s.prev != nil {
		s.prev.next = s
	} else {
		q.first = s
	}
	q.last = from.last
	q.count += from.count
	*from = mail[M]{}
}

// compact rebuilds q without its holes, which moves messages. Without it, one message in each of many segments would keep
// them all.
func (q *mail[M]) compact() {
	dense := mail[M]{}
	for s := q.first; s != nil; s = s.next {
		for i, m := range s.slots {
			if s.live>>i&1 != 0 {
				dense.push(m)
			}
		}
	}
	*q = dense
}

// sparse reports whether compact is worth its time. The removals since the last one have paid for it.
func (q *mail[M]) sparse() bool { return q.holes > 4*lastSegment && q.holes > 2*q.count }

// each calls f with all messages, those included with which another function is being called.
func (q *mail[M]) each(f func(m M)) {
	for s := q.first; s != nil; s = s.next {
		for i, m := range s.slots {
			if s.live>>i&1 != 0 {
				f(m)
			}
		}
	}
}
