package suspendtest_test

import (
	"errors"
	"testing"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func init() {
	open := func(s func(b *Baton) suspend.Spawner) suspendtest.Open {
		return func(testing.TB) (suspend.Spawner, func()) {
			b := &Baton{}
			return s(b), b.Close
		}
	}
	schedulerMutants = append(schedulerMutants,
		mutant{"a Hold that holds nothing", open(func(b *Baton) suspend.Spawner { return loose{b} }), nil,
			[]string{"Holder/close-waits-for-the-release"}},
		mutant{"a wrapper that its tasks do not know", open(func(b *Baton) suspend.Spawner { return wrapped{b} }), nil,
			[]string{"Within/a-task-is-within-its-scheduler"}},
		mutant{"a Block that refuses", tasks(func(t *patch) { t.spawner = refusing{t.s} }), nil,
			[]string{"Blocking/after-close"}},
	)
}

type loose struct{ *Baton }

func (loose) Hold() (release func(), err error) { return func() {}, nil }

type wrapped struct{ suspend.Spawner }

type refusing struct{ suspend.Spawner }

// Block fails otherwise than by ErrClosed, after which Blocking would find a goroutine by itself.
func (refusing) Block(func()) error { return errors.New("full") }
