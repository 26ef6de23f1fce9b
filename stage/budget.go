package stage

import (
	"math"

	"github.com/braidgo/braid/internal/atomicx"
)

// A RetryBudget limits retries to a fraction of the tasks, so that an outage does not multiply the load: with a Retry of three tries, the
// resource would get each task three times just when it is in trouble.
//
// The budget is a bucket of tokens, which is full at first. Each task adds Ratio tokens when its first try ends, and each retry takes a token.
// So n tasks cause at most Burst + Ratio·n retries, however many of them fail. A token is not given back if the task is
// cancelled during the delay before its retry. The stages that share a budget should use the same resource. A RetryBudget must not be copied.
// Its fields must not change while a stage uses it.
//
// This is the budget of Finagle (com.twitter.finagle.service.RetryBudget), and the per-client budget of Google (B. Beyer and others, Site
// Reliability Engineering, chapter 21). Both measure the fraction over some seconds or minutes. Here Burst bounds the tokens of quiet times, so
// that no clock is needed. The throttling of gRPC (proposal A6) counts failures instead, and suspends all retries while more than about
// Ratio of the tries fail.
type RetryBudget struct {
	Ratio float64 // retries per task; zero means 0.1
	Burst int     // the largest number of tokens; zero means 10

	missing atomicx.Uint64 // the bits of the number of tokens that are missing in the bucket
}

// withdraw takes a token, and reports whether there was one.
func (b *RetryBudget) withdraw() bool {
	most := float64(b.Burst)
	if b.Burst == 0 {
		most = 10
	}
	for {
		old := b.missing.Load()
		missing := math.Float64frombits(old) + 1
		if missing > most+1e-6 { // the sum of ten tenths may be less than one
			return false
		}
		if b.missing.CompareAndSwap(old, math.Float64bits(missing)) {
			return true
		}
	}
}

// deposit adds the tokens of a task.
func (b *RetryBudget) deposit() {
	ratio := b.Ratio
	if ratio == 0 {
		ratio = 0.1
	}
	for {
		old := b.missing.Load()
		missing := math.Float64frombits(old)
		if missing == 0 || b.missing.CompareAndSwap(old, math.Float64bits(max(0, missing-ratio))) {
			return
		}
	}
}
