package outcome

// Named returns an error with the given text that wraps the given errors. Its text does not include their texts.
func Named(text string, is ...error) error { return &named{text, is} }

type named struct {
	text string
	is   []error
}

func (n *named) Error() string   { return n.text }
func (n *named) Unwrap() []error { return n.is }
