package blocking

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A stepper has Goroutines whose functions end, and whose looks come, when the test says so. Each step is one critical section,
// so the test can run all possible orders.
type stepper struct {
	*Goroutines
	made    int      // the number of functions passed to Block
	ran     []int    // the numbers of functions that have run
	running []func() // each element ends one function
	looks   []int    // the looks that are set and have not come yet
	moved   bool     // a function has ended since the last look was set
	gone    int      // the number of calls of gone
	told    []string
}

var errClosed = errors.New("closed")

func newStepper(l Limits, tell bool) *stepper {
	s := new(stepper)
	l.Closed = errClosed
	if tell {
		l.Tell = func(text []byte) { s.told = append(s.told, string(text)) }
	}
	s.Goroutines = New(l, func() { s.gone++ })
	s.start = func(f func()) { s.running = append(s.running, f) }
	s.later = func(look int) { s.looks, s.moved = append(s.looks, look), false }
	return s
}

func (s *stepper) block() error {
	n := s.made
	err := s.Block(func() { s.ran = append(s.ran, n) })
	if err == nil {
		s.made++
	}
	return err
}

func (s *stepper) finish(i int) {
	f := s.running[i]
	s.running, s.moved = slices.Delete(s.running, i, i+1), true
	f()
}

// awaits reports whether a look is set, and will come in time.
func (s *stepper) awaits() bool { return s.set != 0 && slices.Contains(s.looks, s.set) }

func (s *stepper) tick() {
	look := s.looks[0]
	s.looks = s.looks[1:]
	s.growIfStuck(look)
}

// A step is one of the four things that can happen.
type step func(s *stepper, m *model)

// A model has the number of functions that may run.
type model struct {
	width, most, may int
	closed           bool
}

var steps = map[byte]step{
	'b': func(s *stepper, m *model) {
		if err := s.block(); (err != nil) != m.closed {
			panic("Block")
		}
	},
	'e': func(s *stepper, m *model) {
		if s.finish(0); len(s.running) == 0 {
			m.may = m.width
		}
	},
	'l': func(s *stepper, m *model) {
		if len(s.queue) > 0 && !s.moved && s.looks[0] == s.set {
			m.may = min(2*m.may, m.most)
		}
		s.tick()
	},
	'c': func(s *stepper, m *model) { s.Close(); m.closed = true },
}

// In every order of nine Blocks, ends, looks and a Close, at most the allowed number of functions run. No function waits although
// another may run, or without a look. Each function runs once. If no function ends any more, the looks let Max of them run.
func TestOrders(t *testing.T) {
	for _, m := range []model{{1, 1, 1, false}, {1, 3, 1, false}, {1, 4, 1, false}, {2, 4, 2, false}} {
		for _, tell := range []bool{false, true} {
			orders := 0
			each(m, tell, "", func(order string, s *stepper, m model) {
				orders++
				if err := m.differs(s, tell); err != "" {
					t.Fatalf("width %d of %d, %s: %s", m.width, m.most, order, err)
				}
				if err := m.endsWell(s); err != "" {
					t.Fatalf("width %d of %d, %s and then nothing: %s", m.width, m.most, order, err)
				}
			})
			require.Greater(t, orders, 1000)
		}
	}
}

// each calls f for every order that begins with the given one.
func each(m model, tell bool, order string, f func(order string, s *stepper, m model)) {
	s, now := newStepper(Limits{Width: m.width, Max: m.most}, tell), m
	for _, c := range []byte(order) {
		steps[c](s, &now)
	}
	next := "b"
	if len(s.running) > 0 {
		next += "e"
	}
	if len(s.looks) > 0 {
		next += "l"
	}
	if !now.closed {
		next += "c"
	}
	f(order, s, now)
	if len(order) < 9 {
		for _, c := range next {
			each(m, tell, order+string(c), f)
		}
	}
}

// differs describes a difference between s and the model.
func (m model) differs(s *stepper, tell bool) string {
	running, queued := s.Counts()
	switch {
	case int(running) != len(s.running):
		return "Counts"
	case int(running) > m.may:
		return "more functions run than may"
	case queued > 0 && int(running) < m.may:
		return "a function waits although another one may run"
	case queued == 0 && running == 0 && s.awaits():
		return "a look is set for no reason"
	case queued > 0 && !s.awaits() && (m.may < m.most || tell && !s.told2()):
		return "no look is set"
	case (s.gone == 1) != (m.closed && running == 0):
		return "gone"
	}
	return ""
}

// endsWell closes s, lets all looks come, and then ends each function. It describes the first mistake that s makes.
func (m model) endsWell(s *stepper) string {
	s.Close()
	for n := 0; len(s.looks) > 0; n++ {
		if s.tick(); n == 10 {
			return "a look is set although it has no effect"
		}
	}
	if running, queued := s.Counts(); queued > 0 && int(running) < m.most {
		return "a function waits although more may run"
	}
	for len(s.running) > 0 {
		s.finish(0)
	}
	slices.Sort(s.ran)
	if len(s.ran) != s.made || len(slices.Compact(s.ran)) != s.made {
		return "a function has not run exactly once"
	}
	if s.gone != 1 {
		return "gone"
	}
	return ""
}

func (s *stepper) told2() bool {
	return slices.ContainsFunc(s.told, func(text string) bool { return strings.Contains(text, "MaxBlocking") })
}

// A thousand transactions share four connections, and each makes three calls. If the width did not grow, the transactions that
// wait for a connection would leave no place for the four that have one.
func TestTransactions(t *testing.T) {
	const tasks, connections = 1000, 4
	synctest.Test(t, func(t *testing.T) {
		var told []string
		g := New(Limits{Tell: func(text []byte) { told = append(told, string(text)) }}, func() {})
		free := make(chan int, connections)
		for i := range connections {
			free <- i
		}
		call := func(f func()) {
			done := make(chan struct{})
			require.NoError(t, g.Block(func() { defer close(done); f() }))
			<-done
		}
		ended := make(chan struct{}, tasks)
		begun := time.Now()
		for range tasks {
			go func() {
				var c int
				call(func() { c = <-free })                       // begin
				call(func() { time.Sleep(5 * time.Millisecond) }) // query
				call(func() { free <- c })                        // commit
				ended <- struct{}{}
			}()
		}
		for range tasks {
			<-ended
		}
		synctest.Wait()
		ideal := tasks / connections * 5 * time.Millisecond
		t.Logf("%v; without a width %v; %s", time.Since(begun), ideal, told)
		require.Less(t, time.Since(begun), ideal+time.Second)
		require.Len(t, told, 1)
		require.Contains(t, told[0], "suspend.Blocking: 64 functions run, none of them has ended for 100ms, and ")
		require.Contains(t, told[0], ": from now on up to 128 run at a time")
		call(func() {}) // runs alone, which resets the width
		synctest.Wait()
		require.Equal(t, defaultWidth, g.width)
		g.Close()
	})
}

// While functions end the width does not grow, however many wait.
func TestNoGrowthWhileFunctionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		g := New(Limits{Width: 3}, func() {})
		for range 300 {
			require.NoError(t, g.Block(func() {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(90 * time.Millisecond)
				now.Add(-1)
			}))
			synctest.Wait() // so that no two functions store at the same time
		}
		g.Close()
		time.Sleep(time.Hour)
		require.EqualValues(t, 3, most.Load())
		running, queued := g.Counts()
		require.Zero(t, running+queued)
	})
}

// If Max is too small, the second report says so, and no report follows.
func TestMaxIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 9)
		g := New(Limits{Width: 2, Max: 5, Tell: func(text []byte) { told <- string(text) }}, func() {})
		release := make(chan struct{})
		for range 10 {
			require.NoError(t, g.Block(func() { <-release }))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "suspend.Blocking: 2 functions run, none of them has ended for 100ms, and 8 wait: from now on up to 4 run at a time", <-told)
		require.Equal(t, "suspend.Blocking: 5 functions run, none of them has ended for 100ms, and 5 wait: MaxBlocking is reached", <-told)
		require.Empty(t, told)
		running, queued := g.Counts()
		require.EqualValues(t, []int64{5, 5}, []int64{running, queued})
		close(release)
		synctest.Wait()
		running, queued = g.Counts()
		require.Zero(t, running+queued)
		g.Close()
	})
}

// A look was set in a bubble that ended before the look came. It must not prevent the next look.
func TestLookOfABubble(t *testing.T) {
	g := New(Limits{Width: 1}, func() {})
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			require.NoError(t, g.Block(func() { <-release }))
			require.NoError(t, g.Block(func() { close(release) }))
			if g.looks == 1 { // the first bubble ends before its look
				release <- struct{}{}
			}
			<-release
			synctest.Wait()
		})
	}
	require.Equal(t, 2, g.looks)
	g.Close()
}

// A function that calls runtime.Goexit has ended.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		g := New(Limits{Width: 1}, func() { close(gone) })
		ran := false
		require.NoError(t, g.Block(runtime.Goexit))
		require.NoError(t, g.Block(func() { ran = true }))
		g.Close()
		<-gone
		require.True(t, ran)
	})
}
