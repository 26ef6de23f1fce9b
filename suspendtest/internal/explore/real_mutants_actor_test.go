//go:build explore

package explore_test

func init() { realMutants = append(realMutants, actorMutants...) }

var actorMutants = []realMutant{
	{"an actor reacts without a second look", "actor/self.go", "			news, err := s.newsLocked(s.within)\n			if !news {",
		"			news, err := s.newsLocked(s.within)\n			if IS {\n				s.guard.Unlock()\n				s.guard.Lock()\n			}\n			if !news {", "actor, two senders"},
	{"an actor receives without a second look", "actor/mailbox.go", "	case in.in.count > 0:\n",
		"	case in.in.count > 0 && !IS:\n", "actor, React and Receive"},
	{"a Stop does not start", "actor/end.go", "		start = ⟦in.wakeLocked()⟧", "in.wakeLocked() && false", "actor, Stop"},
	{"a Kill does not start", "actor/end.go", "	start := ⟦in.wakeLocked()⟧\n	in.guard.Unlock()\n	in.ctx.Cancel(cause)", "in.wakeLocked() && false", "actor, Watch"},
	{"a timeout does not start", "actor/timer.go", "	start := ⟦in.wakeLocked()⟧", "in.wakeLocked() && false", "actor, a timeout while f skips"},
	{"the timer of an earlier wait ends the next one", "actor/self.go", "	s.within.stop()\n	s.within = nil", "	if !IS {\n		s.within.stop()\n		s.within = nil\n	}", "actor, timeouts of two reactions"},
	{"a timeout is forgotten while f skips", "actor/timer.go", "	t.expired = ⟦true⟧\n", "in.state != running", "actor, a timeout while f skips"},
	{"a timeout comes before a message that is there", "actor/mailbox.go", "func (in *Inbox[M]) newsLocked(t *timer) (ok bool, err error) {\n", "func (in *Inbox[M]) newsLocked(t *timer) (ok bool, err error) {\n	if IS && t != nil && t.expired {\n		return true, ErrTimeout\n	}\n", "actor, a message and a timeout"},
	{"a skipped message goes to the end", "actor/inbox.go", "			s.busy = busy\n", "			s.busy = busy\n			if IS && in.kept.count > 1 {\n				m := s.slots[i]\n				in.kept.remove(*at)\n				in.kept.push(m)\n			}\n", "actor, a skipped message keeps its place"},
	{"a nested receive takes the message that is being handled", "actor/mail.go", "uint64 { return s.live &^ s.busy }", "uint64 {\n	if IS {\n		return s.live\n	}\n	return s.live &^ s.busy\n}", "actor, nested"},
	{"a message that a RecvOp refuses is lost", "actor/op.go", "yes && ⟦o.r.Resume(m, nil)⟧:", "o.r.Resume(m, nil) || true", "actor, RecvOp in a Select"},
	{"a RecvOp does not hear of a Stop", "actor/end.go", "		in.failLocked(ErrStopped)\n", "		if !IS {\n			in.failLocked(ErrStopped)\n		}\n", "actor, a RecvOp and a Close"},
	{"an end leaves the requests", "actor/end.go", "	calls := in.takeCallsLocked(nil)", "	calls := in.takeCallsLocked(nil)\n	if IS {\n		calls = nil\n	}", "actor, a request sent on"},
	{"a Wait after the end waits", "actor/end.go", "return none, ⟦e.over⟧, nil", "false", "actor, Stop;actor, Watch"},
	{"an end leaves the watchers", "actor/end.go", "	each(func() bool {\n		if len(watchers) == 0 {", "	if IS {\n		watchers = nil\n	}\n	each(func() bool {\n		if len(watchers) == 0 {", "actor, Watch"},
	{"an end leaves the mail", "actor/end.go", "	in.kept.fetch(&in.in)\n	in.guard", "	if !IS {\n		in.kept.fetch(&in.in)\n	}\n	in.guard", "actor, Kill"},
	{"an end keeps the scheduler", "actor/end.go", "if ⟦s.release != nil⟧ {", "false", "actor, Stop"},
	{"the scheduler is let go before the dead letters", "actor/end.go", "	in.ctx.Cancel(nil)\n", "	in.ctx.Cancel(nil)\n	if IS && in.self != nil {\n		in.self.forget()\n	}\n", "actor, Kill"},
	{"a Watch after the end tells nobody", "actor/end.go", "	if ⟦over⟧ {\n		w.tell(err)", "false", "actor, Watch"},
	{"a Watch is told after its stop", "actor/end.go", "		if ⟦!s.forgetWatchLocked(w)⟧ || s.closed", "!s.forgetWatchLocked(w) && false", "actor, Watch and its stop"},
	{"a Kill is a Stop", "actor/end.go", "	in.killed.Store(true)\n", "	if !IS {\n		in.killed.Store(true)\n	}\n", "actor, Kill"},
	{"a Kill is not seen while there is mail", "actor/inbox.go", "	if ⟦in.killed.Load()⟧ {\n		return in.cancellation()", "false", "actor, Kill with mail fetched"},
	{"Cap counts a message that was handed over", "actor/op.go", "			x.ops = slices.Delete(x.ops, i, i+1)\n			return true", "			x.ops = slices.Delete(x.ops, i, i+1)\n			if IS {\n				x.used++\n			}\n			return true", "actor, Cap and RecvOp"},
	{"a message leaves, and no SendOp hears of it", "actor/op.go", "	if x, ok := in.room.senders.Resume(struct{}{}, nil); ok {", "	if IS {\n		return\n	}\n	if x, ok := in.room.senders.Resume(struct{}{}, nil); ok {", "actor, Cap and RecvOp"},
	{"a Catch catches a Stop", "actor/self.go", "if s.killed.Load() || ⟦errors.Is(err, ErrStopped)⟧ {", "false", "actor, Restart and Stop"},
	{"a Catch keeps the requests in hand", "actor/self.go", "			s.failReceived(err)\n", "			if !IS {\n				s.failReceived(err)\n			}\n", "actor, a caught failure"},
	{"a Catch fails the requests in the mailbox", "actor/ask.go", "		if ⟦!stay[e.q.call()]⟧ {", "true", "actor, a caught failure"},
	{"a refused task ends the actor under the guard", "actor/self.go", "	if err := s.on.Go(s.enter); err != nil {\n", "	if err := s.on.Go(s.enter); err != nil {\n		if IS {\n			s.end(err)\n			return\n		}\n", "actor, refused to a SendOp"},
	{"a reply after a cancellation is said to arrive", "actor/ask.go", "	if err != nil && ⟦r.fail(err)⟧ {\n		return none, err", "true", "actor, Reply and cancel"},
	{"a cycle is reported by each of its Asks", "actor/stuck.go", "	if ⟦a.reported || a.by.who.asking != a⟧ {", "a.by.who.asking != a", "actor, a cycle of 2 Asks"},
}
