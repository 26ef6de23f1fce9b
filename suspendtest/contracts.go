package suspendtest

import "errors"

var errTest = errors.New("an error that is delivered")

var contractChecks = []check{
	{"01/block-runs-once-on-the-caller",
		"contract 1: Suspend calls block exactly once, on the calling goroutine.", nil, blockOnce},
	{"01/block-holds-nothing",
		"contract 1: while block runs, no lock is held: other tasks can suspend, resume and start tasks.", nil, blockHoldsNothing},
	{"01/block-does-not-run-if-ctx-is-done",
		"contract 1: if ctx has already ended, Suspend fails and block does not run.", nil, blockNotIfDone},
	{"01/suspend-inside-block-panics",
		"contract 1: a Suspend inside block panics, and does not harm the outer Suspend.", nil, blockMustNotSuspend},
	{"01/a-failure-found-in-block-is-delivered",
		"contract 1: if block passes an error to its own Resumer, Suspend returns the error.", nil, blockFails},

	{"02/one-winner",
		"contract 2: of all Resumes and the cancellation of a suspension, exactly one wins.", nil, oneWinner},
	{"02/resume-after-resume-is-false",
		"contract 2: a second Resume returns false and delivers nothing.", nil, secondResume},
	{"02/resume-after-cancellation-is-false-and-delivers-nothing",
		"contract 2: a Resume after the cancellation returns false, and its value is never seen.", nil, resumeCancelled},

	{"02/resume-after-cancel-has-returned-is-false",
		"contract 2: once the function that cancels ctx has returned, no Resume of a wait with ctx returns true.", nil, resumeAfterCancel},

	{"03/resume-true-is-returned-even-if-ctx-is-done",
		"contract 3: once Resume has returned true, Suspend returns that value, whatever happens to ctx.", nil, deliveryPromise},
	{"03/value-and-error-are-delivered-together",
		"contract 3: Suspend returns both the value and the error that Resume was given.", nil, deliverBoth},

	{"04/error-is-both-err-and-cause",
		"contract 4: a cancelled Suspend returns an error that is both ctx.Err() and context.Cause(ctx).", nil, cancelError},

	{"05/resume-before-block-returns",
		"contract 5: Resume may be called while block still runs, also by another goroutine.", nil, resumeInBlock},
	{"05/resume-after-suspend-returned-is-false",
		"contract 5: Resume may be called after Suspend has returned and the task has ended, and returns false.", nil, resumeAfter},
	{"05/resume-after-close-is-false",
		"contract 5: Resume may be called after the scheduler has closed, and returns false.", nil, resumeAfterClose},
	{"05/resume-under-a-lock-that-the-waiter-needs",
		"contract 5: Resume, and so Unpark, must not run the waiter or wait for it: its caller may hold locks.", nil, resumeUnderLock},
	{"05/resume-by-a-task-under-a-lock-that-the-waiter-needs",
		"contract 5: Resume, and so Unpark, must not run the waiter inside the task that calls it.", nil, resumeUnderLockInTask},
	{"05/resume-does-not-wait-for-a-busy-scheduler",
		"contract 5: Resume, and so Unpark, must not wait for the scheduler, which may be busy for a long time.", nil, resumeBusy},
	{"05/resumed-tasks-run-in-order",
		"contract 5: tasks that one goroutine resumes become runnable, and on a FIFO scheduler run, in that order.",
		func(o Options) bool { return o.FIFO }, resumeOrder},

	{"06/value-of-block-dominates-cancellation",
		"contract 6: a value that block returns is the result, even if ctx has ended by then.", nil, blockValue},
	{"06/resumer-is-dead-after-a-value-of-block",
		"contract 6: after block has returned a value, Resume returns false.", nil, blockValueKills},
	{"06/resume-before-a-value-of-block-panics",
		"contract 6: if block returns a value after its Resumer was called, Suspend panics.", nil, blockValueResumed},

	{"07/panic-in-block-propagates-and-kills-the-resumer",
		"contract 7: a panic in block leaves Suspend with the same value, and Resume then returns false.", nil, blockPanics},
	{"07/goexit-in-block-ends-the-task-and-kills-the-resumer",
		"contract 7: a Goexit in block ends the task, and nothing else, and Resume then returns false.", nil, blockExits},

	{"08/stale-resumers-do-not-touch-a-later-suspension",
		"contract 8: the Resumers of earlier suspensions of a task return false, and do not end a later suspension.", nil, staleResumers},
	{"08/unpark-does-not-end-a-suspension",
		"contract 8: an Unpark without a Resume may let Park return, but never Suspend.", nil, unparkOnly},
	{"08/late-unpark-does-not-disturb-the-next-task",
		"contract 8: an Unpark of a task that runs, or has ended, leaves at most a permit: it must not queue anything.", nil, lateUnparks},
	{"08/late-cancellation-does-not-touch-a-later-suspension",
		"contract 8: the end of a context cancels only suspensions with that context.", nil, lateCancellation},

	{"09/any-context-cancels",
		"contract 9: contexts of every kind cancel a parked task, again and again.", nil, anyContext},
	{"09/alternating-contexts",
		"contract 9: a task may wait with another context each time, and each cancels its own waits.", nil, alternatingContexts},
	{"09/cancellation-at-every-point",
		"contract 9: a context that ends at any point between the entry of Suspend and Park cancels the wait.", nil, cancelAnywhere},
	{"09/cancellation-between-two-waits-is-not-lost",
		"contract 9: a context that ends between two waits cancels the second wait.", nil, cancelBetween},
	{"09/a-context-that-is-never-done",
		"contract 9: contexts without a Done channel cancel nothing.", nil, neverDone},
	{"09/registrations-are-few-and-end-with-the-task",
		"contract 9: a task has at most one registration with its contexts, and none once it has ended.", nil, registrations},

	{"10/nothing-is-retained-of-what-was-delivered-or-cancelled",
		"contract 10: a live task retains at most one old context, and nothing else of its earlier waits.", nil, retention},
	{"10/nothing-is-retained-of-a-task-that-has-ended",
		"contract 10: when a task has ended, nothing of its waits is retained.", nil, retentionEnded},

	{"13/resume-happens-before-the-return-of-suspend",
		"contract 13: what happened before Resume returned true happened before Suspend returned.", nil, happensBefore},
}
