package stage_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A model is a stage as its documentation describes it, without concurrency. Its lists have the ids of tasks.
type model struct {
	queue   int
	reject  bool // Options.Reject
	lifo    bool
	level   func(id int) int
	width   int
	closed  bool
	cut     bool
	rejects int

	waiting, delayed, outside []int
	busy                      map[int]bool
	mayEnd                    map[int]bool   // a Do or Begin, which has the context of its task
	ended                     map[int]bool   // the contexts that have ended
	gone                      map[int]bool   // the Dos that have returned
	answers                   map[int]string // the results of tasks, and of calls that failed
	dead                      map[int]bool   // the tasks reported to OnFail
	stats                     stage.Stats
}

func newModel(o stage.Options, level func(id int) int) *model {
	return &model{level: level, queue: o.Queue, reject: o.Reject, lifo: o.LIFO, width: o.Width, busy: map[int]bool{}, mayEnd: map[int]bool{},
		ended: map[int]bool{}, gone: map[int]bool{}, answers: map[int]string{}, dead: map[int]bool{}}
}

func (m *model) room() bool {
	return len(m.waiting)+len(m.busy)+len(m.delayed) < m.queue+m.width
}

// offer models a call that submits. never means that it does not wait for room.
func (m *model) offer(id int, never bool) {
	switch {
	case m.closed:
		m.refuse(id, "closed")
	case m.room():
		m.accept(id)
	case (never || m.reject) && m.displaces(id):
		m.accept(id)
	case never || m.reject:
		if m.rejects++; m.rejects >= len(m.waiting) { // removes the tasks whose Do has returned
			m.rejects = 0
			m.waiting = slices.DeleteFunc(m.waiting, func(id int) bool {
				if m.gone[id] {
					m.end(id, &m.stats.Cancelled, "cancelled")
				}
				return m.gone[id]
			})
			m.admit()
		}
		m.refuse(id, "full")
	default:
		m.outside = append(m.outside, id)
	}
	m.begin()
}

// displaces ends the last task of the lowest level, if id has a higher level.
func (m *model) displaces(id int) bool {
	last := -1
	for i, w := range m.waiting {
		if last < 0 || m.level(w) < m.level(m.waiting[last]) || m.level(w) == m.level(m.waiting[last]) && !m.lifo {
			last = i
		}
	}
	if last < 0 || m.level(m.waiting[last]) >= m.level(id) {
		return false
	}
	out := m.waiting[last]
	m.waiting = slices.Delete(m.waiting, last, last+1)
	if m.ended[out] {
		m.end(out, &m.stats.Cancelled, "cancelled")
	} else {
		m.end(out, &m.stats.Late, "displaced")
	}
	return true
}

func (m *model) refuse(id int, why string) {
	m.stats.Arrived++
	m.stats.Rejected++
	m.answers[id] = why
}

func (m *model) accept(id int) {
	m.stats.Arrived++
	m.stats.Accepted++
	m.waiting = append(m.waiting, id)
}

func (m *model) admit() {
	for len(m.outside) > 0 && m.room() {
		m.accept(m.outside[0])
		m.outside = m.outside[1:]
	}
}

// end models the end of a task. The result is "oops" by default.
func (m *model) end(id int, count *uint64, answer string) {
	*count++
	m.answers[id] = cmp.Or(answer, "oops")
	m.dead[id] = count == &m.stats.Failed || count == &m.stats.Late
}

// begin begins tasks while there is a free slot.
func (m *model) begin() {
	for id, ok := m.take(); ok; id, ok = m.take() {
		m.start(id)
	}
}

// take removes the task that begins next.
func (m *model) take() (id int, ok bool) {
	if len(m.waiting) == 0 || len(m.busy) >= m.width {
		return 0, false
	}
	i := 0
	for k, w := range m.waiting {
		if l, most := m.level(w), m.level(m.waiting[i]); l > most || l == most && m.lifo {
			i = k
		}
	}
	id = m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.busy[id] = true
	return id, true
}

func (m *model) start(id int) {
	if m.ended[id] {
		delete(m.busy, id)
		m.end(id, &m.stats.Cancelled, "cancelled")
		m.admit()
	}
}

// let models the end of a handler.
func (m *model) let(id int, how command) {
	delete(m.busy, id)
	switch retried := (how == again || how == later) && !m.ended[id] && !m.cut; {
	case how == succeed:
		m.end(id, &m.stats.Completed, fmt.Sprint(2*id))
	case retried && how == later:
		m.stats.Retried++
		m.delayed = append(m.delayed, id)
	case retried:
		m.stats.Retried++
		m.delayed = append(m.delayed, id)
		next, ok := m.take() // the worker takes the next task, and then puts this one in front
		m.delayed = m.delayed[:len(m.delayed)-1]
		m.putInFront(id)
		if ok {
			m.start(next)
		}
	default:
		m.end(id, &m.stats.Failed, map[command]string{panics: "panic", exit: "abandoned"}[how])
	}
	m.admit()
	m.begin()
}

func (m *model) putInFront(id int) {
	if m.lifo {
		m.waiting = append(m.waiting, id)
	} else {
		m.waiting = slices.Insert(m.waiting, 0, id)
	}
}

// cancel models the end of a context.
func (m *model) cancel(id int, isDo bool) {
	if i := slices.Index(m.outside, id); i >= 0 {
		m.outside = slices.Delete(m.outside, i, i+1)
		m.answers[id] = "cancelled"
		return
	}
	if m.busy[id] || slices.Contains(slices.Concat(m.waiting, m.delayed), id) {
		m.ended[id] = m.mayEnd[id]
		m.gone[id] = isDo
	}
	if i := slices.Index(m.delayed, id); i >= 0 && m.ended[id] { // does not wait for the delay
		m.delayed = slices.Delete(m.delayed, i, i+1)
		m.putInFront(id)
		m.begin()
	}
}

func (m *model) close(cut bool) {
	m.closed = true
	for _, id := range m.outside {
		m.refuse(id, "closed")
	}
	m.outside = nil
	if !cut || len(m.waiting)+len(m.busy)+len(m.delayed) == 0 {
		return
	}
	m.cut = true
	for _, id := range slices.Concat(m.waiting, m.delayed) {
		if m.ended[id] {
			m.end(id, &m.stats.Cancelled, "cancelled")
		} else {
			m.end(id, &m.stats.Failed, "closed")
		}
	}
	m.waiting, m.delayed = nil, nil
}

func (m *model) figures() stage.Stats {
	s := m.stats
	s.Waiting, s.Busy, s.Delayed, s.Outside, s.Handlers = len(m.waiting), len(m.busy), len(m.delayed), len(m.outside), len(m.busy)
	s.Width, s.Closed = m.width, m.closed
	return s
}

// A command tells a handler how to end.
type command uint8

const (
	succeed command = iota
	fail
	again // without a delay
	later // after an hour, so never in this test
	panics
	exit
)

// real is the stage under test, with handlers that wait for commands. mu guards its maps.
type real struct {
	s       *stage.Stage[int, int]
	mu      sync.Mutex
	busy    map[int]*promise.Promise[command]
	answers map[int]string
	dead    map[int]int
	cancels map[int]context.CancelFunc
	futures map[int]promise.Future[int]
	dropped bool
}

type retryLater struct{ error }

func newReal(on suspend.Spawner, o stage.Options, level func(id int) int) *real {
	r := &real{busy: map[int]*promise.Promise[command]{}, answers: map[int]string{}, dead: map[int]int{}, cancels: map[int]context.CancelFunc{},
		futures: map[int]promise.Future[int]{}}
	o.On = on
	o.OnPanic = func(any, []byte) {}
	o.Retry = func(err error, try int) (time.Duration, bool) {
		if _, ok := err.(retryLater); ok {
			return time.Hour, true
		}
		return 0, err == errAgain
	}
	r.s = stage.New("s", r.handle, o).OnFail(func(_ context.Context, id int, _ error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.dead[id]++
	}).Prioritize(level)
	return r
}

var errAgain = fmt.Errorf("again: %w", errOops)

func (r *real) handle(_ context.Context, id int) (int, error) {
	told := promise.New[command]()
	r.mu.Lock()
	if r.busy[id] = told; r.dropped {
		_ = told.Fill(succeed)
	}
	r.mu.Unlock()
	how, _ := told.Await(bg)
	switch how {
	case fail:
		return 0, errOops
	case again:
		return 0, errAgain
	case later:
		return 0, retryLater{errOops}
	case panics:
		panic("told to")
	case exit:
		runtime.Goexit()
	}
	return 2 * id, nil
}

func (r *real) let(id int, how command) {
	r.mu.Lock()
	told := r.busy[id]
	delete(r.busy, id)
	r.mu.Unlock()
	_ = told.Fill(how)
}

// drop ends the tasks that remain after a failed comparison.
func (r *real) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = true
	for _, told := range r.busy {
		_ = told.Fill(succeed)
	}
	for _, cancel := range r.cancels {
		cancel()
	}
}

func brief(s stage.Stats) string {
	return fmt.Sprintf("arrived %d accepted %d rejected %d; completed %d failed %d cancelled %d retried %d; waiting %d busy %d delayed %d outside %d handlers %d width %d closed %v",
		s.Arrived, s.Accepted, s.Rejected, s.Completed, s.Failed, s.Cancelled, s.Retried, s.Waiting, s.Busy, s.Delayed, s.Outside, s.Handlers, s.Width, s.Closed)
}

// equal compares the stage with the model.
func (r *real) equal(m *model) error {
	s := r.s.Stats()
	s.Name, s.Queue, s.Dropped, s.Reason, s.Wait, s.Service = "", 0, 0, "", stage.Histogram{}, stage.Histogram{}
	if want := m.figures(); s != want {
		return fmt.Errorf("%s, want %s", brief(s), brief(want))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got, want := slices.Sorted(maps.Keys(r.busy)), slices.Sorted(maps.Keys(m.busy)); !slices.Equal(got, want) {
		return fmt.Errorf("in progress are %v, want %v", got, want)
	}
	for _, id := range slices.Concat(m.waiting, m.delayed) {
		if r.answers[id] == "" && m.gone[id] {
			return fmt.Errorf("the Do of %d has not returned", id)
		}
	}
	return nil
}
