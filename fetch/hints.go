package fetch

import (
	"fmt"
	"strings"
	"time"
)

// hints looks for rounds that need not be, and for tasks that wait for a round only.
func (t *Trace) hints() (hints []string) {
	lone := t.lone()
	for i := 0; i < len(lone); {
		j, sameLine := i+1, true
		for j < len(lone) && lone[j].follows(lone[j-1]) {
			sameLine = sameLine && lone[j].first.line() == lone[i].first.line()
			j++
		}
		first, last := lone[i].sent.round, lone[j-1].sent.round
		switch {
		case j-i > 2 && sameLine:
			hints = append(hints, fmt.Sprintf("rounds %d–%d have one key each, asked by one task in a loop at %s: if they are independent, Map makes them one",
				first, last, lone[i].first.line()))
		case j-i > 1 && !sameLine:
			var sources, lines []string
			for _, a := range lone[i:j] {
				sources, lines = append(sources, a.sent.source), append(lines, a.first.line())
			}
			hints = append(hints, fmt.Sprintf("%s (%s) are asked one after the other by one task: if they are independent, %s %s",
				list(sources), strings.Join(lines, ", "), combinators[min(j-i, 4)], saves(j-i-1)))
		}
		i = j
	}
	return append(hints, t.waits()...)
}

var combinators = map[int]string{2: "Two", 3: "Three", 4: "Together"}

func saves(rounds int) string {
	if rounds == 1 {
		return "saves a round"
	}
	return fmt.Sprintf("saves %d rounds", rounds)
}

func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// lone returns the requests that are alone in their round, in the order of the rounds.
func (t *Trace) lone() (lone []*asked) {
	inRound := map[int]int{}
	for _, b := range t.sent {
		inRound[b.round] += len(b.requests)
	}
	for _, b := range t.sent {
		if a := b.requests[0]; b.round > 0 && inRound[b.round] == 1 && a.first != nil {
			lone = append(lone, a)
		}
	}
	return lone
}

// follows reports whether one task has asked for both, a right after b.
func (a *asked) follows(b *asked) bool {
	m, n := a.first, b.first
	return a.sent.round == b.sent.round+1 && m.because == b && m.task == n.task
}

// waits finds sources that are much slower than the rest of their round.
func (t *Trace) waits() (hints []string) {
	told := map[string]bool{}
	for i, slow := range t.sent {
		rest, tasks := time.Duration(0), map[*trail]bool{}
		for _, b := range t.sent {
			if b.round != slow.round || b == slow {
				continue
			}
			rest = max(rest, b.to)
			for _, a := range b.requests {
				for m := a.first; m != nil; m = m.next {
					tasks[m.task] = true
				}
			}
		}
		took := slow.to - slow.from
		if slow.round == 0 || slow.eager || len(tasks) == 0 || told[slow.source] || took < 5*time.Millisecond || slow.to-rest < took/2 || i == len(t.sent)-1 {
			continue
		}
		told[slow.source] = true
		hints = append(hints, fmt.Sprintf("%s answers in %s, %s waited only for its round %d: see Eager", slow.source, short(took), count(len(tasks), "task"), slow.round))
	}
	return hints
}
