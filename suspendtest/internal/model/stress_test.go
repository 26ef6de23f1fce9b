package model_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
)

// A mixed scheduler uses all schedulers, in turn.
type mixed struct {
	all []suspend.Spawner
	n   atomic.Uint32
}

func (m *mixed) pick() suspend.Spawner { return m.all[int(m.n.Add(1))%len(m.all)] }

func (m *mixed) Go(f func()) error      { return m.pick().Go(f) }
func (m *mixed) Execute(f func()) error { return m.pick().(suspend.Executor).Execute(f) }

// The same programs run several at a time, with the tasks of each on all schedulers.
func TestAgainstModelsOnAllSchedulersAtOnce(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline+2*stress.For(t))()
	on := &mixed{}
	for _, s := range schedtest.All {
		s, closeAll := s.Open()
		defer closeAll()
		on.all = append(on.all, s)
	}
	var want []string
	for _, spec := range model.All {
		for _, what := range model.Uncovered(spec, nil) {
			want = append(want, spec.Name+": "+what)
		}
	}
	seen, last := stress.Of(want...), rand.Uint64()
	stress.Rounds(t, seen, func() {
		var all sync.WaitGroup
		for range 2 * len(model.All) {
			last++
			seed := last
			spec := model.All[seed%uint64(len(model.All))]
			if missing := seen.Missing(); len(missing) > 0 { // requires that every result has occurred
				spec = model.All[slices.IndexFunc(model.All, func(s model.Spec) bool {
					what := missing[seed%uint64(len(missing))]
					return strings.HasPrefix(what, s.Name+": ")
				})]
			}
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				p, counts := spec.Random(rng), map[string]int{}
				err := p.Run(model.Place{On: on, Then: on, Seen: counts, Patience: 20 * time.Second, Turn: func() bool {
					ran := make(chan struct{})
					_ = on.Go(func() { close(ran) })
					<-ran
					runtime.Gosched()
					return true
				}})
				if err != nil {
					t.Errorf("seed %d: %v\n%v", seed, err, p)
				}
				for what := range counts {
					seen.Add(spec.Name + ": " + what)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			t.FailNow()
		}
	})
}
