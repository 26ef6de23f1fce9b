package suspendtest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
)

// seedVariable names the environment variable for a seed. If it is set, Properties runs only the program of this seed for each
// primitive.
const seedVariable = "BRAID_SEED"

type propertiesOptions struct {
	seed     uint64 // the first seed; random if it is 0
	programs int    // the number of programs; if it is 0, see more
	patience time.Duration
	shorten  time.Duration // how long to look for a shorter program that fails
}

// Properties runs random programs on a scheduler, in one subtest for each primitive of this module and one subtest for Selects
// over several primitives. Each subtest runs 150 programs, or up to 1000 if they take less than a fifth of a second. Each
// operation starts in a separate task, as a method call or through suspend.Do; if the scheduler is also an Executor,
// suspend.Then is used, too. Operations are cancelled, or time out, before, during or after their waits, while other operations
// start. The scheduler may run the tasks in any order.
//
// Properties checks three rules. Every operation returns exactly once. Every result is allowed by the documentation of the
// primitive: no value or permit is lost or duplicated, and a cancelled operation has no effect. Every operation that can
// complete does complete: no wake-up is lost.
//
// In contrast, Scheduler checks single suspensions and names the broken rule.
//
// A failure is reported with a program that is as short as possible. Each line of the program starts or cancels an operation.
// The report includes the seed, for the environment variable BRAID_SEED. The same program might not fail each time, because the program
// does not determine the order of the tasks. On adapters/random, a seed also determines the order, so use that scheduler to test a
// primitive.
func Properties(t *testing.T, open Open) { allProperties(t, open, 0) }

func allProperties(t *testing.T, open Open, programs int) {
	o := propertiesOptions{programs: programs, patience: 10 * time.Second, shorten: 3 * time.Second}
	if s := os.Getenv(seedVariable); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		o.seed, o.programs = seed, 1
	}
	for _, spec := range model.All {
		t.Run(spec.Name, func(t *testing.T) { properties(t, spec, open, o) })
	}
}

func properties(t testing.TB, spec model.Spec, open Open, o propertiesOptions) {
	t.Helper()
	seed, begun := cmp.Or(o.seed, rand.Uint64()>>32), time.Now()
	s, shut := open(t)
	for i := 0; more(o, i, time.Since(begun)); i++ {
		seed := seed + uint64(i)
		p := spec.Random(rand.New(rand.NewPCG(seed, 1)))
		err := runOn(s, p, o.patience)
		if err == nil {
			continue
		}
		p, err = shrink(t, p, err, open, o)
		t.Errorf("%v\n%vfound with %s=%d", err, p, seedVariable, seed)
		return // tasks that hang are left behind
	}
	if err := within(o.patience, shut); err != nil {
		t.Errorf("close did not return although every task has ended: %v", err)
	}
}

func more(o propertiesOptions, n int, d time.Duration) bool {
	if o.programs > 0 {
		return n < o.programs
	}
	return n < 150 || n < 1000 && d < time.Second/5
}

// runOn runs a program, but gives up if it hangs.
func runOn(s suspend.Spawner, p *model.Program, patience time.Duration) error {
	place := model.Place{On: s, Patience: patience, Turn: func() bool {
		ran := make(chan struct{})
		err := s.Go(sync.OnceFunc(func() { close(ran) }))
		runtime.Gosched()
		return err == nil && within(patience, func() { <-ran }) == nil
	}}
	place.Then, _ = s.(suspend.Executor)
	var result error // a program that hangs may set result later
	if hung := within(3*patience, func() { result = p.Run(place) }); hung != nil {
		return fmt.Errorf("the scheduler blocks its caller: %w", hung)
	}
	return result
}

// within calls f on a new goroutine and waits until f returns, but at most for d.
func within(d time.Duration, f func()) error {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return fmt.Errorf("after %v", d)
	}
}

// shrink looks for a shorter program that fails. shrink runs each program several times, because a failure may depend on
// chance.
func shrink(t testing.TB, p *model.Program, err error, open Open, o propertiesOptions) (*model.Program, error) {
	impatient := min(o.patience, 100*time.Millisecond)
	end := time.Now().Add(o.shorten)
	fails := func(p *model.Program, times int, patience time.Duration) (err error) {
		for n := 0; n < times && err == nil; n++ {
			s, shut := open(t)
			err = runOn(s, p, patience)
			go shut()
		}
		return err
	}
	short := p.Shrink(func(p *model.Program) bool {
		return time.Now().Before(end) && fails(p, 3, impatient) != nil
	})
	if again := fails(short, 3, min(o.patience, time.Second)); again != nil {
		return short, again
	}
	return p, errors.Join(err, errors.New("(no shorter program that fails each time was found)"))
}
