package suspend

// A Ban is a reason why suspending is a mistake in some code. NewBan makes one, once for each reason.
type Ban struct{ binding binding }

// NewBan returns a Ban of this text: a Suspend under it panics with the text.
func NewBan(text string) *Ban { return &Ban{binding{slot: text}} }

// Run calls f and returns true. While f runs, a Suspend on this goroutine panics, as under Bind(nil, f), but with the text
// of the ban. If the caller is under this ban already, Run returns false and does not call f.
func (b *Ban) Run(f func()) bool {
	at, before, away := here()
	if before == &b.binding || before != nil && before.via != nil && before.via.bound == &b.binding {
		return false
	}
	at.bind(&b.binding, before, away, f)
	return true
}
