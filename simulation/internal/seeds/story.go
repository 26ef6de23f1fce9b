package seeds

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Record contains the faults of a run, and, if How.Tell is set, its story. The program adds to the Record of its run.
type Record struct {
	Run
	How
	story []Scene
	came  []string       // the faults that occurred, by kind and number
	count map[string]int // the number of faults of each kind, including omitted faults
	named []string       // the names of the nodes
	bands []*band        // sorted by their beginning
}

// A Scene is an event of a story: a message, a fault, or a line of Log.
type Scene struct {
	Step    int
	At      time.Duration
	Text    string   // a description, or an excerpt of a message
	Crosses []string // the nodes that the event crosses out

	// The following fields are set for a message.
	To      string
	Bytes   int
	Message *Message

	order int // the index in the story
}

// A Message is a piece of data in transit. The program sets From and Stream before it adds the Scene. If two Scenes of one moment have the same
// Stream, which is not nil, they are one message.
type Message struct {
	From    string // the node of the sender
	Stream  any
	there   bool
	arrived time.Duration
	before  int // the length of the story at the arrival
}

// A band is the duration of a fault of a node, or of the link between two nodes.
type band struct {
	of, with string // the node that has the fault, and ""; or the two nodes of the link that has it
	what     string
	from, to time.Duration // the beginning and the end; the end is -1 while the fault lasts
	at       int           // the length of the story when the fault began
	until    int           // the length of the story when the fault ended
}

// ErrLonger ends a run whose story has become longer than How.Limit.
var ErrLonger = errors.New("simulation: stopped, because a shorter variant also fails")

// NewRecord returns the Record of a run that is about to begin. It returns nil, which records nothing, if the run has no changes and no
// story.
func NewRecord(r Run, how How) *Record {
	if !how.Tell && !r.changes() {
		return nil
	}
	return &Record{Run: r, How: how, count: map[string]int{}}
}

// Tells reports whether the run has a story.
func (r *Record) Tells() bool { return r != nil && r.Tell }

// Comes counts a fault, and reports whether the fault should occur.
func (r *Record) Comes(kind string) bool {
	if r == nil {
		return true
	}
	r.count[kind]++
	name := kind + strconv.Itoa(r.count[kind])
	if r.Off[name] {
		return false
	}
	r.came = append(r.came, name)
	return true
}

// Stops reports whether a debugger must stop the run before a step with this number. It returns true once.
func (r *Record) Stops(step int) bool {
	if r.Stop == 0 || step < r.Stop {
		return false
	}
	r.Stop = 0
	return true
}

// Name adds a node.
func (r *Record) Name(node string) { r.named = append(r.named, node) }

// Add adds a Scene to the story. It returns false if the story has become too long.
func (r *Record) Add(s Scene) bool {
	s.order = len(r.story)
	r.story = append(r.story, s)
	return r.Limit == 0 || len(r.story) <= r.Limit
}

// Arrives records the arrival of a message.
func (r *Record) Arrives(m *Message, at time.Duration) {
	m.there, m.arrived, m.before = true, at, len(r.story)
}

// Band records the beginning or the end of a fault of a node, or of the link between two nodes.
func (r *Record) Band(of, with, what string, at time.Duration, begins bool) {
	i := slices.IndexFunc(r.bands, func(b *band) bool { return b.of == of && b.with == with && b.what == what && b.to < 0 })
	switch {
	case begins && i < 0:
		r.bands = append(r.bands, &band{of, with, what, at, -1, len(r.story), -1})
	case !begins && i >= 0:
		r.bands[i].to, r.bands[i].until = at, len(r.story)
	}
}

// scenes returns the story. It merges the segments of one Write into one message.
func (r *Record) scenes() (all []Scene) {
	for _, s := range r.story {
		if n := len(all) - 1; n >= 0 && s.continues(all[n]) {
			all[n].Bytes, all[n].Text, all[n].Message = all[n].Bytes+s.Bytes, all[n].Text+s.Text, s.Message
			continue
		}
		all = append(all, s)
	}
	return all
}

func (s Scene) continues(before Scene) bool {
	return s.Message != nil && before.Message != nil && s.Message.Stream != nil && s.Message.Stream == before.Message.Stream && s.At == before.At
}

func (s Scene) describe() string {
	switch {
	case s.Message == nil:
		return s.Text
	case s.Message.there:
		return fmt.Sprintf("%s sends %d bytes to %s, there at %v: %q", s.Message.From, s.Bytes, s.To, s.Message.arrived, s.Text)
	}
	return fmt.Sprintf("%s sends %d bytes to %s, lost: %q", s.Message.From, s.Bytes, s.To, s.Text)
}

// The text of a story with more lines than longStory, as of a cluster that makes no progress, has messages only among so many last lines.
const longStory, lastMessages = 100, 20

// Story returns the story of a run as text. Each line contains the step, the time and a description of an event. A long story has all faults
// and lines of Log, but messages only among its last lines.
func (r Result) Story() string {
	var b strings.Builder
	line := func(step int, at time.Duration, text string) { fmt.Fprintf(&b, "%7d %14v  %s\n", step, at, text) }
	all, omitted := r.Record.scenes(), 0
	for i, s := range all {
		if s.Message != nil && len(all) > longStory && i < len(all)-lastMessages {
			omitted++
			continue
		}
		line(s.Step, s.At, s.describe())
	}
	line(r.Steps, r.Elapsed, Verdict(r.Err))
	if omitted > 0 {
		return fmt.Sprintf("    (without %d messages before the last %d lines)\n", omitted, lastMessages) + b.String()
	}
	return b.String()
}
