package seeds

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// toy is a Runner whose program draws twenty numbers. Its run fails if the faults that the last number names have occurred.
type toy struct {
	ran   []string // the runs, with a star if a run was performed twice
	fails func(draws []int, faults int) error
	other bool // the second run of each seed differs
}

func (x *toy) Run(r Run, how How) Result {
	x.ran = append(x.ran, r.String())
	rec := NewRecord(r, how)
	result := Result{Seed: r.Seed, Record: rec}
	source, forks := draws.Source(r.Seed), r.Forks
	var all []int
	faults := 0
	if rec.Tells() {
		rec.Name("a1")
		rec.Name("b")
	}
	for step := range 20 {
		for len(forks) > 0 && forks[0].Step <= step {
			source = draws.Source(draws.Mix(uint64(source), forks[0].Salt))
			forks = forks[1:]
		}
		all = append(all, source.Below(10))
		at := time.Duration(step) * time.Second
		if all[step] == 9 {
			result.Came = append(result.Came, Milestone{"nine", step})
		}
		result.Steps, result.Elapsed = step+1, at
		if !rec.Comes("spill") {
			continue
		}
		faults++
		if !rec.Tells() {
			continue
		}
		m := &Message{From: "a1", Stream: x}
		if !rec.Add(Scene{Step: step, At: at, Text: fmt.Sprint("spill ", step), To: "b", Bytes: 7, Message: m}) {
			result.Err = ErrLonger
			return result
		}
		if step%2 == 0 {
			rec.Arrives(m, at+time.Second)
		}
	}
	result.Hash = draws.Mix(uint64(all[19]), uint64(faults))
	result.Sometimes = map[string]bool{"even": all[19]%2 == 0}
	if x.fails != nil {
		result.Err = x.fails(all, faults)
	}
	return result
}

func (x *toy) Twice(r Run, how How) Result {
	result := x.Run(r, how)
	x.ran[len(x.ran)-1] += "*"
	if x.other {
		result.Err, result.Differs = errors.New("they differ"), true
	}
	return result
}

func (x *toy) Again(r Run, how How, _ Result) Result { return x.Run(r, how) }

func (x *toy) Trace(n int) []string { return slices.Repeat([]string{"a line"}, n/20) }

// options returns Options for tests of a toy.
func (x *toy) options() Options {
	return Options{Seeds: 12, Package: "example.org/x", Runner: func() (Runner, func()) { return x, func() {} },
		Account: func(Result) string { return "" }}
}

func (x *toy) session(t *testing.T, set func(s *session)) *session {
	s := &session{Options: x.options(), first: x}
	s.environment = environment{n: 12, jobs: 1}
	set(s)
	return s
}
