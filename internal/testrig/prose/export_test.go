package prose

// Text adds the sentences of a text.
func (s *Score) Text(text string) { s.text("", 0, text) }
