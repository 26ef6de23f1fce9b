package suspend

import "runtime"

// Shield calls f, and delays a Kill of the calling task until f has returned. It is for a primitive that must not leave its caller
// without something, such as the lock that Cond.Wait takes again. f should wait only for events that do not depend on the task,
// because the scheduler cannot end the task before f returns. Shields nest. A Shield does not delay the end of a context.
func Shield(f func()) {
	b := placed()
	if b == nil || b.task == nil && b.via == nil || b.shields&own != 0 {
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
	if !b.shielded() {
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

// shield implements Shield. b is the binding in the caller's place. If f panics, a delayed Kill ends the next wait.
func (b *binding) shield(f func()) {
	b.shields |= own
	defer func() {
		b.shields &^= own
		if by := b.lender(); by != nil && by.killed {
			by.last = wait{status: unarmed}
		}
	}()
	f()
	b.shields &^= own
	if by := b.lender(); by != nil { // in a Pull, possibly a different task, or none
		by.exitIfKilled()
	}
}

// shielded reports whether the task is in a Shield, which delays a Kill.
func (b *binding) shielded() bool {
	found := b.shields
	for in := b.user(); in != nil; in = in.user() {
		found |= in.shields
	}
	return found != 0
}

// user returns the binding of the body that uses the binding of b, or nil if b's code calls no Pull, or one in which a Task is bound.
func (b *binding) user() *binding {
	p := b.via
	if p != nil && b.task == nil {
		p = p.calls
	}
	if p == nil || p.body == nil || p.body.b.task != nil {
		return nil
	}
	return p.body.b
}

// lendShield tells the tasks bound in the body of p, and of the Pulls that it calls, whether there is a Shield around the call of next.
func (p *pulled) lendShield(around bool) {
	for p != nil && p.body != nil {
		b := p.body.b
		if p = b.via; b.task == nil && p != nil {
			p = p.calls
		}
		if b.task != nil {
			b.shields = b.shields&own | lentIf(around)
		}
		around = around || b.shields&own != 0
	}
}

func lentIf(around bool) shields {
	if around {
		return lent
	}
	return 0
}

// lift ends a Shield early, and reports whether there was a Shield. A delayed Kill then takes effect.
func (b *binding) lift() bool {
	if !b.shielded() {
		return false
	}
	b.shields = 0
	for in := b.user(); in != nil; in = in.user() {
		in.shields = 0
	}
	if b.killed {
		b.endWait()
	}
	return true
}

// exitIfKilled ends the calling task if it was killed. Wait and Select call it after they have removed their nodes.
func (b *binding) exitIfKilled() {
	if b.killed && !b.shielded() {
		b.killed = false
		runtime.Goexit()
	}
}

// takeKill is called when Bind binds b in a task that is bound to before. From now on a Kill and a Shield of the task belong to b.
func (b *binding) takeKill(before *binding) {
	if by := before.lender(); by != nil && by.task != nil {
		b.shields = before.shields
		if by != before {
			b.shields |= lentIf(by.shielded())
		}
		by.passKill(b)
	}
}

// giveKill undoes takeKill at the end of the Bind.
func (b *binding) giveKill(before *binding) {
	if by := before.lender(); by != nil && by.task != nil {
		if by == before {
			before.shields = before.shields&own | b.shields&lent // a Pull around both may have another caller
		}
		b.passKill(by)
	}
	b.reset()
	b.shields = 0
}

// passKill passes a Kill that has not taken effect to another binding of the task, whose next wait it ends.
func (b *binding) passKill(to *binding) {
	if b.killed {
		b.killed = false
		to.killed, to.last = true, wait{status: unarmed}
	}
}
