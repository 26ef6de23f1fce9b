package schedtest

import (
	"slices"
	"sync"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A Virtual is a scheduler with a virtual clock, which only Advance moves. Its tasks are goroutines.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	timers []*virtualTimer // the pending timers
}

type virtualTimer struct {
	at time.Time
	f  func()
}

// NewVirtual returns a Virtual whose clock shows a time in 1970.
func NewVirtual() *Virtual { return &Virtual{now: time.Unix(1000, 0)} }

// A virtualTask is a goroutine whose Spawner is a Virtual.
type virtualTask struct {
	suspend.Task
	v *Virtual
}

func (t *virtualTask) Spawner() suspend.Spawner { return t.v }

// Go implements suspend.Spawner.
func (v *Virtual) Go(f func()) error {
	go v.Bind(f)
	return nil
}

// Execute implements suspend.Executor.
func (v *Virtual) Execute(f func()) error {
	go suspend.Bind(nil, f)
	return nil
}

// Bind runs f as a task, on the calling goroutine.
func (v *Virtual) Bind(f func()) { suspend.Bind(&virtualTask{sched.NewThread(), v}, f) }

// Now implements sched.Clock.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// AfterFunc implements sched.Timers.
func (v *Virtual) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := &virtualTimer{v.now.Add(d), f}
	v.timers = append(v.timers, t)
	return func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		i := slices.Index(v.timers, t)
		if i >= 0 {
			v.timers = slices.Delete(v.timers, i, i+1)
		}
		return i >= 0
	}
}

// Timers returns how many timers are pending.
func (v *Virtual) Timers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.timers)
}

// Advance advances the clock by d, and calls the functions of all timers that are due.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	v.now = v.now.Add(d)
	var due []*virtualTimer
	v.timers = slices.DeleteFunc(v.timers, func(t *virtualTimer) bool {
		if !t.at.After(v.now) {
			due = append(due, t)
			return true
		}
		return false
	})
	v.mu.Unlock()
	slices.SortStableFunc(due, func(s, t *virtualTimer) int { return s.at.Compare(t.at) })
	for _, t := range due {
		t.f()
	}
}
