package coro

import (
	"testing"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// A step gives way after one look at the earliest, and after two at the latest. A step that lasts sets the word, which all operations load, for
// a short time only.
func TestTurns(t *testing.T) {
	for phase := time.Duration(0); phase < turnLook; phase += time.Millisecond / 2 {
		watched(t, time.Hour, func(s *Stalls, _ func() []string) {
			s.turns.on = true
			held(s, phase)
			if preempt.On() {
				t.Error("the word is set for nobody")
			}
			var task nobody
			task.Init(&task)
			task.WatchedBy(s)
			from, words := time.Duration(0), 0
			task.Start(func() {
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
					if preempt.On() {
						words++
					}
					if late := task.Preempt(); late && from == 0 {
						if from = time.Since(began); !preempt.On() {
							t.Error("the step is late, and the word is not set")
						}
					} else if !late && from > 0 {
						t.Error("the step is late no more")
					}
				}
			})
			s.Begin()
			task.Step()
			if from < turnLook || from > 2*turnLook+time.Millisecond {
				t.Errorf("%v after the first look: late after %v", phase, from)
			}
			if words < 10 || words > 150 {
				t.Errorf("the word was set for %d ms", words)
			}
			s.Begin()
			if task.Preempt() {
				t.Error("the next step is late")
			}
			task.Stop()
		})
	}
}

// Neither a worker that sleeps nor one that has ended leaves the word set.
func TestTurnsLeaveNoWord(t *testing.T) {
	for _, end := range []func(s *Stalls){
		func(s *Stalls) { s.End(); time.Sleep(time.Second) },
		(*Stalls).Stop,
	} {
		watched(t, time.Hour, func(s *Stalls, _ func() []string) {
			s.turns.on = true
			step(s, func() {
				for !preempt.On() {
					time.Sleep(time.Millisecond)
				}
			})
			if end(s); preempt.On() {
				t.Error("the word is set")
			}
		})
	}
}
