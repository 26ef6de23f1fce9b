package stage

import "context"

// replicas is a Flow that distributes its tasks over several stages of the same kind, each with its own state.
type replicas[In, Out any] struct {
	flow[In, Out]
	stages []*Stage[In, Out]
	key    func(In) uint64
}

// Replicate calls the function make with the numbers from 0 to n-1, and returns a flow that distributes its tasks over the resulting
// stages. If key is not nil, tasks with the same key go to the same stage; if the Width of that stage is 1, these tasks run one
// after another, in order. If key is nil, a task goes to the stage with the fewest tasks. A handler of a Do may run on the caller, see
// Stage.Do.
func Replicate[In, Out any](n int, key func(In) uint64, make func(i int) *Stage[In, Out]) Flow[In, Out] {
	if n < 1 {
		panic("stage: Replicate with less than one stage")
	}
	r := &replicas[In, Out]{key: key}
	for i := range n {
		r.stages = append(r.stages, make(i))
		r.parts = append(r.parts, r.stages[i])
	}
	r.flow = flow[In, Out]{parts: r.parts, stages: func(to []Observed) []Observed {
		for _, s := range r.stages {
			to = append(to, s)
		}
		return to
	}}
	r.wire = func(to port[Out]) port[In] {
		s := &spread[In, Out]{r: r}
		for _, stage := range r.stages {
			s.ports = append(s.ports, stage.bind(to))
		}
		return s
	}
	r.in = r.wire(nil)
	return r
}

// Do implements Flow.
func (r *replicas[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	return r.stages[r.choose(in)].Do(ctx, in)
}

// A spread is the port of replicas. The spread chooses a replica for each task.
type spread[In, Out any] struct {
	r     *replicas[In, Out]
	ports []port[In]
}

func (s *spread[In, Out]) full(how) error { return nil }

func (s *spread[In, Out]) put(ctx context.Context, t *task, in In, h how, from *core) error {
	return s.ports[s.r.choose(in)].put(ctx, t, in, h, from)
}

func (s *spread[In, Out]) pass(t *task, in In, now int64, from *core) (dues, bool) {
	return s.ports[s.r.choose(in)].pass(t, in, now, from)
}

func (r *replicas[In, Out]) choose(in In) int {
	if r.key != nil {
		return int(r.key(in) % uint64(len(r.stages)))
	}
	best, least := 0, 0
	for i, s := range r.stages {
		s.pool.guard.Lock()
		n := s.inside()
		s.pool.guard.Unlock()
		if i == 0 || n < least {
			best, least = i, n
		}
	}
	return best
}
