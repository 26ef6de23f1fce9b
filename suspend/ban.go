package suspend

// A Ban is a reason why suspending is a mistake in some code. NewBan makes one, once for each reason.
type Ban struct{ binding binding }

// NewBan returns a Ban of this text: a Suspend under it panics with the text.
func NewBan(text string) *Ban { return &Ban{binding{slot: text}} }

// Enter puts the calling goroutine under the ban until Exit: a Suspend there panics, as under Bind(nil, f), but with the
// text of the ban. It nests as Bind does. If the caller is under this ban already, Enter reports false, and changes nothing.
func (b *Ban) Enter() (e Entered, ok bool) {
	at, before, away := here()
	if before == &b.binding || before != nil && before.via != nil && before.via.bound == &b.binding {
		return Entered{}, false
	}
	at.b = &b.binding
	return Entered{at, before, away}, true
}

// In reports whether the calling goroutine is under the ban.
func (b *Ban) In() bool { return current() == &b.binding }

// Exit ends what Enter began, on the same goroutine. A deferred call does so however the code in between ends.
func (b *Ban) Exit(e Entered) { e.place.restore(e.before, e.away) }
