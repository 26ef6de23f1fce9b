//go:build explore

package callback

import (
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/suspend"
)

// An Exploring is a Loop for the model checker: its steps run without coroutines.
type Exploring struct{ *Loop }

// NewExploring returns one whose executor is asked for steps by post, and which does them by Step.
func NewExploring(post func()) Exploring {
	l := &Loop{exec: posting(post), direct: true}
	l.core = coro.NewRunner(suspend.Goroutines, l.wake, nil)
	l.core.Sleep()
	return Exploring{l}
}

type posting func()

func (p posting) Execute(func()) error { p(); return nil }

// Step is one step.
func (x Exploring) Step() {
	x.core.RunPlainly()
	x.after()
}
