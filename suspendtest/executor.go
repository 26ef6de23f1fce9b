package suspendtest

import (
	"testing"

	"github.com/braidgo/braid/suspend"
)

// Executor checks the Executor that open starts for each subtest. close must return when every accepted callback has run. Of
// the Options, only FIFO has an effect.
func Executor(t *testing.T, open func(t testing.TB) (x suspend.Executor, close func()), o Options) {
	runChecks(t, executorChecks, o.complete(), openExecutor(open))
}

var executorChecks = []check{
	{"Execute/every-callback-runs-once",
		"Execute: nil means that f will run, once.", nil, runOnce},
	{"Execute/callbacks-run-in-order",
		"Execute: on a FIFO executor callbacks run in the order in which they were enqueued.",
		func(o Options) bool { return o.FIFO }, runInOrder},
	{"Execute/does-not-run-inline",
		"Execute must not run f before it returns: its caller may hold locks.", nil, notInline},
	{"Execute/does-not-wait-for-a-busy-executor",
		"Execute must not block: it is called under locks.", nil, submitToBusy},
	{"Execute/a-callback-must-not-suspend",
		"Execute: a Suspend in a callback must panic; the executor runs callbacks under Bind(nil).", nil, callbackSuspends},
	{"Execute/refused-or-run-while-closing",
		"Execute: nil means that f will run, even while the executor closes; an error means that f will never run.",
		nil, submitWhileClosing},
	{"Execute/a-callback-may-resume",
		"a callback may resume suspended tasks and goroutines.", nil, callbackResumes},
}

func callbackSuspends(e *env) {
	for range 2 {
		e.do("a callback that suspends did not return", func() {
			e.panics("a Suspend in a callback", func() {
				_, _ = e.suspend(background, func(r resume) (*box, bool) { r(nil, nil); return nil, false })
			})
		})
	}
}

func callbackResumes(e *env) {
	got := make(chan *box, 1)
	published := make(chan resume, 1)
	go func() {
		v, _ := e.suspend(background, func(r resume) (*box, bool) { published <- r; return nil, false })
		got <- v
	}()
	r, v := recv(e, published, "block did not run"), new(box)
	e.do("a callback did not run", func() {
		if !r(v, nil) {
			e.errorf("Resume in a callback returned false")
		}
	})
	if recv(e, got, "a goroutine that was resumed by a callback did not continue") != v {
		e.errorf("Suspend did not return the value that Resume delivered")
	}
}
