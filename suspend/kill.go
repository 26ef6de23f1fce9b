package suspend

import "runtime"

// Shield calls f, and delays a Kill of the calling task until f has returned. It is for a primitive that must not leave its caller
// without something, such as the lock that Cond.Wait takes again. f should wait only for events that do not depend on the task,
// because the scheduler cannot end the task before f returns. Shields nest. A Shield does not delay the end of a context.
func Shield(f func()) {
	b := current()
	if b == nil || b.task == nil || b.shielded {
		f()
		return
	}
	b.shield(f)
}

// KillSelf kills the calling task, as [Bound.Kill] does. It is for the Park of a Task that decorates another one, and must not return
// to a wait that its owner has given up: if a Resume has ended the wait already, the wait returns, and the next wait exits.
func KillSelf() {
	if b := current(); b != nil && b.task != nil {
		b.kill()
	}
}

// kill marks the task as killed, and ends the current wait as the end of a context would. Between two waits the word is open too.
// So endWait also sets b.last.status to unarmed, a status that no word has; the next wait must then call arm, which exits. Under a
// Shield, kill only marks the task. It returns false if the task is already marked.
func (b *binding) kill() bool {
	if b.killed {
		return false
	}
	b.killed = true
	if !b.shielded {
		b.endWait()
	}
	return true
}

func (b *binding) endWait() {
	b.last = wait{status: unarmed}
	if b.word.cancelAny() {
		b.task.Unpark()
	} // a Resume or a context that has won calls Unpark itself
}

// shield implements Shield. If f panics, a delayed Kill ends the next wait.
func (b *binding) shield(f func()) {
	b.shielded = true
	defer func() {
		if b.shielded = false; b.killed {
			b.last = wait{status: unarmed}
		}
	}()
	f()
	b.shielded = false
	b.exitIfKilled()
}

// lift ends a Shield early, and reports whether there was a Shield. A delayed Kill then takes effect.
func (b *binding) lift() bool {
	if !b.shielded {
		return false
	}
	b.shielded = false
	if b.killed {
		b.endWait()
	}
	return true
}

// exitIfKilled ends the calling task if it was killed. Wait and Select call it after they have removed their nodes.
func (b *binding) exitIfKilled() {
	if b.killed && !b.shielded {
		b.killed = false
		runtime.Goexit()
	}
}

// takeKill is called when Bind binds b in a task that is bound to before. From now on a Kill and a Shield of the task belong to b.
func (b *binding) takeKill(before *binding) {
	if before = before.lender(); before != nil && before.task != nil {
		b.shielded = before.shielded
		before.passKill(b)
	}
}

// giveKill undoes takeKill at the end of the Bind.
func (b *binding) giveKill(before *binding) {
	if before = before.lender(); before != nil && before.task != nil {
		b.passKill(before)
	}
	b.reset()
	b.shielded = false
}

// passKill passes a Kill that has not taken effect to another binding of the task, whose next wait it ends.
func (b *binding) passKill(to *binding) {
	if b.killed {
		b.killed = false
		to.killed, to.last = true, wait{status: unarmed}
	}
}
