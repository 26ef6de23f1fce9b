package simulation

import (
	"cmp"
	"fmt"
	"github.com/braidgo/braid/simulation/internal/seeds"
	"time"
)

// An event is a line of the trace. All events go into the hash, so two runs with the same hash had the same events. The hash contains the
// numbers of hosts; only the event of a new node contributes a name.
type event struct {
	kind  kind
	quiet bool // the trace omits the event, because the task executes a guest's call
	at    time.Duration
	host  *place // the acting host; nil for a timer, a segment or a callback
	task  int    // the acting task's number on its host
	of    *place // the other host that takes part
	n     int    // the count of runnable tasks, the number of a woken task, or a count of bytes
	data  uint64 // a hash of the bytes or the text, or a port
	text  string

	message *seeds.Message // the message that is sent or arrives; set only if the run records a story, see journal.go
}

// A place is the World itself or a Node, as events name it.
type place struct {
	name  string // empty for the World itself
	index int    // the index in World.hosts
}

type kind uint8

const (
	resumed kind = iota
	made
	begun
	starts
	asks
	called
	wakes
	sets
	fired
	logged
	dialled
	connected
	failed
	listens
	sent
	arrived
	broken
	crashed
	restarted
	wrote
)

func (p *place) number() int {
	if p == nil {
		return 0
	}
	return p.index + 1
}

// String returns the event's line of the trace.
func (e event) String() string { return fmt.Sprintf("%14v  %s", e.at, e.act()) }

// act returns the event's line without the time.
func (e event) act() string {
	who := taskName(e.host, e.task)
	switch e.kind {
	case resumed:
		return fmt.Sprintf("%s goes on, one of %d that could run", who, e.n)
	case made:
		return fmt.Sprintf("%s makes node %s", who, e.text)
	case begun:
		return fmt.Sprintf("%s begins, one of %d that could run", who, e.n)
	case starts:
		return fmt.Sprintf("%s starts a task of %s", who, hostName(e.of))
	case asks:
		return fmt.Sprintf("%s asks for a callback of %s", who, hostName(e.of))
	case called:
		return fmt.Sprintf("a callback of %s runs, one of %d that could run", hostName(e.host), e.n)
	case wakes:
		return fmt.Sprintf("%s wakes %s", who, taskName(e.of, e.n))
	case sets:
		return fmt.Sprintf("%s sets a timer for %v", who, time.Duration(e.data))
	case fired:
		return fmt.Sprintf("a timer of %s", hostName(e.host))
	case logged:
		return fmt.Sprintf("%s: %s", who, e.text)
	case dialled:
		return fmt.Sprintf("%s dials %s:%s", who, hostName(e.of), e.text)
	case connected:
		return fmt.Sprintf("%s is connected to %s", who, e.text)
	case failed:
		return fmt.Sprintf("%s is not connected: %s", who, e.text)
	case listens:
		if e.text != "" && e.text != "udp" {
			return fmt.Sprintf("%s listens on %s", who, e.text)
		}
		return fmt.Sprintf("%s listens on port %d", who, e.data)
	case sent:
		return fmt.Sprintf("%s sends %d bytes to %s: %q", who, e.n, hostName(e.of), e.text)
	case arrived:
		return fmt.Sprintf("%d bytes arrive at %s", e.n, hostName(e.of))
	case broken:
		return fmt.Sprintf("a connection of %s and %s breaks: %s", hostName(e.host), hostName(e.of), e.text)
	case crashed:
		if e.n > 0 {
			return fmt.Sprintf("%s loses its power", hostName(e.of))
		}
		return fmt.Sprintf("%s crashes", hostName(e.of))
	case restarted:
		return fmt.Sprintf("%s restarts", hostName(e.of))
	}
	return fmt.Sprintf("%s: disk of %s: %s (%016x)", who, hostName(e.of), e.text, e.data)
}

func hostName(h *place) string {
	if h == nil || h.name == "" {
		return "the World"
	}
	return h.name
}

// taskName returns a name for the task with the number id on h.
func taskName(h *place, id int) string {
	switch {
	case h == nil:
		return "a timer or segment"
	case id == 0:
		return cmp.Or(h.name, "a guest")
	case h.name != "" && id < 0:
		return fmt.Sprintf("%s(%d)", h.name, -id)
	case h.name != "":
		return fmt.Sprintf("%s#%d", h.name, id)
	case id == 1 || id == -1:
		return "main"
	}
	return fmt.Sprintf("#%d", id)
}

// The maximum number of a message's bytes in a line of the trace, and in a line of the story.
const (
	traced = 64
	shown  = 120
)

// excerpt returns p as a string. If len(p) exceeds the limit, it returns only the beginning and the end of p, because an HTTP request has
// its request line at the beginning and its body at the end.
func excerpt(p []byte, most int) string {
	const gap = " ... "
	if len(p) <= most {
		return string(p)
	}
	head := (most - len(gap)) / 3
	return string(p[:head]) + gap + string(p[len(p)-(most-len(gap)-head):])
}
