package suspend

import "runtime"

// Shield calls f, and puts off a Kill of the calling task until f has returned. It is for a primitive that must not leave its caller without
// something, such as the lock that a Cond gives back. f should wait only for what comes without the task: until then, its scheduler
// does not end the task. Shield changes nothing but that, and nests. It is not for contexts.
func Shield(f func()) {
	b := current()
	if b == nil || b.task == nil || b.shielded {
		f()
		return
	}
	if t, ok := b.task.(interface{ Shield(f func()) }); ok { // a decorator of the Task that Kill ends
		t.Shield(f)
		return
	}
	b.shield(f)
}

// kill sets the mark, and ends the wait as a context that is done would. The word is open between two waits, too: then the mark, and a status
// that no word has, send the next wait to arm. Under a Shield there is only the mark.
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
	} // a Resume or a context has won, and unparks the task
}

// shield is Shield. After a panic of f, a Kill ends the next wait.
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

// lift lifts a Shield. The Kill that waits for its end takes effect.
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

// exitIfKilled is called where nothing of the task is queued any more.
func (b *binding) exitIfKilled() {
	if b.killed && !b.shielded {
		b.killed = false
		runtime.Goexit()
	}
}
