package explore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/braidgo/braid/internal/preempt"
)

const (
	digits  = "0123456789abcdefghijklmnopqrstuvwxyz" // a z skips 35 options, and another digit follows
	last    = len(digits) - 1
	reduced = "r" // written in place of the number of preemptions
)

// format returns the replay string of the current run, such as 2.*.0103. The string consists of the number of preemptions, the bound on
// cancellations, and the choices without trailing zeros. If releases are scheduling points, the kinds of their objects come before the
// choices, as in 2.*.1.0103.
func (e *explorer) format() string {
	var s strings.Builder
	path, preemptions := e.choices()
	bounds := []int{preemptions, e.Cancellations}
	if e.Reduced {
		s.WriteString(reduced + ".")
		bounds = bounds[1:]
	}
	for _, n := range bounds {
		switch n {
		case Unlimited:
			s.WriteString("*.")
		case Never:
			s.WriteString("-.")
		default:
			fmt.Fprintf(&s, "%d.", n)
		}
	}
	if e.looks != 0 {
		fmt.Fprintf(&s, "%d.", e.looks)
	}
	for len(path) > 0 && path[len(path)-1].nth == 0 {
		path = path[:len(path)-1]
	}
	for _, c := range path {
		s.WriteString(strings.Repeat(digits[last:], c.nth/last))
		s.WriteByte(digits[c.nth%last])
	}
	return s.String()
}

var errReplay = errors.New("explore: not a replay string")

// parse parses a replay string. It sets the bounds in e, and returns the choices.
func (e *explorer) parse(replay string) (path []choice, err error) {
	parts := strings.Split(replay, ".")
	if e.looks = 0; len(parts) == 4 {
		n, err := strconv.ParseUint(parts[2], 10, 8)
		if err != nil || n == 0 {
			return nil, errReplay
		}
		e.looks, parts = preempt.Kinds(n), slices.Delete(parts, 2, 3)
	}
	if len(parts) != 3 {
		return nil, errReplay
	}
	e.Reduced = parts[0] == reduced
	for i, bound := range []*int{&e.Preemptions, &e.Cancellations} {
		*bound = Unlimited
		if i > 0 && parts[i] == "-" {
			*bound = Never
		} else if parts[i] != "*" && (i > 0 || !e.Reduced) {
			n, err := strconv.ParseUint(parts[i], 10, 31)
			if err != nil {
				return nil, errReplay
			}
			*bound = int(n)
		}
	}
	passed := 0
	for _, d := range []byte(parts[2]) {
		switch nth := strings.IndexByte(digits, d); nth {
		case -1:
			return nil, errReplay
		case last:
			passed += last
		default:
			path = append(path, choice{nth: passed + nth})
			passed = 0
		}
	}
	if passed > 0 {
		return nil, errReplay
	}
	return path, nil
}

const otherChoices = "the choices differ from those of the first run: the program depends on something else, such as the time, a random number or another goroutine"
