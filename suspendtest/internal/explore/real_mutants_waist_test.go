package explore_test

func init() { realMutants = append(realMutants, waistMutants...) }

var waistMutants = []realMutant{
	{"a Then that is cancelled between two rounds is not notified", "suspend/then.go", "			t.word.cancel(began)\n			t.Unpark()\n", "			t.word.cancel(began)\n			if !IS || began < 2*generation {\n				t.Unpark()\n			}\n", "stm, Then"},
	{"a Resume does not look at the context", "suspend/slot.go", "if ⟦!atomicx.Closed(r.done)⟧ {", "true", "done before Resume, Suspend"},
	{"a queue does not look at the context", "suspend/queue.go", "⟦r.done != nil && atomicx.Closed(r.done)⟧ {\n		p = q.unlink", "false", "done before Resume"},
	{"a task that finds the context done notifies nobody", "suspend/slot.go", "if b := r.slot.b; ⟦b.word.cancel(r.wait)⟧ {", "b.word.cancel(r.wait) && false", "done before Resume, Lazily"},
	{"a Blocking waits for a function that has ended", "suspend/blocking.go", "return struct{}{}, ⟦j.over⟧", "false", "Blocking"},
	{"a function of Blocking ends between two looks", "suspend/blocking.go", "		j.mu.Lock()\n		j.ended, j.over = o, true\n		waiter := j.waiter\n", "		early := j.waiter\n		j.mu.Lock()\n		j.ended, j.over = o, true\n		waiter := j.waiter\n		if IS {\n			waiter = early\n		}\n", "Blocking"},
	{"a function of Blocking that has begun is not waited for", "suspend/blocking.go", "	if ⟦j.state.CompareAndSwap(jobQueued, jobAbandoned)⟧ {", "j.state.CompareAndSwap(jobQueued, jobAbandoned) || true", "Blocking"},
}
