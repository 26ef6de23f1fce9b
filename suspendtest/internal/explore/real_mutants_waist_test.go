//go:build explore

package explore_test

func init() { realMutants = append(realMutants, waistMutants...) }

var waistMutants = []realMutant{
	{"a Resume does not look at the context", "suspend/resumer.go", "if ⟦r.done == nil || !atomicx.Closed(r.done)⟧ {", "true", "done before Resume, Suspend"},
	{"a queue does not look at the context", "suspend/queue.go", "⟦r.done != nil && atomicx.Closed(r.done)⟧ {\n		p = q.unlink", "false", "done before Resume"},
	{"who finds the context done tells nobody", "suspend/resumer.go", "if b := r.slot.b; ⟦b.word.cancel(r.wait)⟧ {", "b.word.cancel(r.wait) && false", "done before Resume, Lazily"},
}
