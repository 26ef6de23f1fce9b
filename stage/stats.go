package stage

// Stats has the figures of a stage at one moment. The figures always add up: Arrived is Accepted plus Rejected, and Accepted is the
// sum of Completed, Failed, Late, Cancelled, Waiting, Busy and Delayed.
type Stats struct {
	Name string

	Arrived   uint64
	Accepted  uint64
	Rejected  uint64 // tasks refused because the queue was full or the stage was closed
	Late      uint64 // tasks shed by Delay, or displaced by a task of a higher priority
	Cancelled uint64 // tasks that their callers have cancelled
	Completed uint64
	Failed    uint64 // tasks that have failed for good
	Retried   uint64 // tries that failed and were followed by another try
	Dropped   uint64 // failed tasks whose error is an ErrOverload; Failed includes them
	Unretried uint64 // tries that failed and were followed by no other try, because RetryBudget was used up

	Waiting  int // tasks in the queue
	Busy     int // tasks in progress
	Delayed  int // tasks between two tries
	Outside  int // callers that wait for room
	Handlers int // handlers that run or wait
	Width    int
	Reason   string // the reason of the last change of the width, from Options.Limit, or "SetWidth"
	Queue    int
	Closed   bool // Close has been called

	Wait    Histogram // the times from acceptance to the beginning of the handler
	Service Histogram // the running times of handlers
}

// Sub returns the figures for the time between the snapshots earlier and s. Counts and histograms are differences; levels, such as
// Waiting, come from s.
func (s Stats) Sub(earlier Stats) Stats {
	s.Arrived -= earlier.Arrived
	s.Accepted -= earlier.Accepted
	s.Rejected -= earlier.Rejected
	s.Late -= earlier.Late
	s.Cancelled -= earlier.Cancelled
	s.Completed -= earlier.Completed
	s.Failed -= earlier.Failed
	s.Retried -= earlier.Retried
	s.Dropped -= earlier.Dropped
	s.Unretried -= earlier.Unretried
	s.Wait.sub(&earlier.Wait)
	s.Service.sub(&earlier.Service)
	return s
}

// Stats returns the figures of s. Stats never suspends.
func (s *Stage[In, Out]) Stats() Stats {
	s.pool.guard.Lock()
	defer s.pool.guard.Unlock()
	return s.stats()
}

func (s *Stage[In, Out]) stats() Stats { return s.core.stats(s.outside.Len()) }

func (c *core) stats(outside int) Stats {
	return Stats{
		Name:    c.name,
		Arrived: c.arrived, Accepted: c.accepted, Rejected: c.rejected,
		Late: c.late, Cancelled: c.cancelled, Completed: c.completed, Failed: c.failed, Retried: c.retried, Dropped: c.dropped,
		Unretried: c.unretried.Load(),
		Waiting:   c.waiting, Busy: c.progress, Delayed: c.delayed, Outside: outside, Handlers: c.taken,
		Width: c.width, Reason: c.reason, Queue: c.o.Queue, Closed: c.closed,
		Wait: c.wait, Service: c.service,
	}
}

// PoolStats has the figures of a pool at one moment.
type PoolStats struct {
	Name    string
	Width   int
	Running int // handlers that run, and workers that are about to run one
	Workers int // all workers, including idle workers
	Idle    int
}

// Stats returns the figures of p. Stats never suspends.
func (p *Pool) Stats() PoolStats {
	p.guard.Lock()
	defer p.guard.Unlock()
	return PoolStats{p.name, p.width, p.running, p.alive, len(p.idle)}
}
