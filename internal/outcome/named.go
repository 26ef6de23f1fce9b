package outcome

// Named returns an error with this text that is each of these errors, in the sense of errors.Is. Their texts are not in its text.
func Named(text string, is ...error) error { return &named{text, is} }

type named struct {
	text string
	is   []error
}

func (n *named) Error() string   { return n.text }
func (n *named) Unwrap() []error { return n.is }
