//go:build explore

package callback

import (
	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/suspend"
)

// An Exploring is a Loop for the model checker. Its steps run without coroutines.
type Exploring struct{ *Loop }

// NewExploring returns an Exploring that requests a step by calling the function post. Step runs the requested step.
func NewExploring(post func()) Exploring {
	l := &Loop{exec: posting(post), direct: true, start: func(f func()) { _ = suspend.Here().Go(f) }}
	l.core = runner.New(suspend.Goroutines, l.wake, nil, errClosed)
	l.core.Sleep()
	l.run = func() {
		l.core.RunPlainly()
		l.after()
	}
	return Exploring{l}
}

type posting func()

func (p posting) Execute(func()) error { p(); return nil }

// Step runs one step, if a step was requested.
func (x Exploring) Step() {
	if x.claimStep() {
		x.run()
	}
}
