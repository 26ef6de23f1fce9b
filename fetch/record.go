package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A Recording is all the answers of a session, of each source by its name. It is JSON: marshal it to keep it.
type Recording struct {
	Sources map[string][]Answer `json:"sources"`
}

// An Answer is that to one key, or the result of one Effect: a value, or else an error or a panic. Of the Effects with equal keys
// the first is before the second.
type Answer struct {
	Key      json.RawMessage `json:"key"`
	Value    json.RawMessage `json:"value,omitempty"`
	NotFound bool            `json:"notFound,omitempty"`
	Error    string          `json:"error,omitempty"` // its text, or that of a panic
	Panic    bool            `json:"panic,omitempty"`
}

// Record returns the answers that the session has got so far. It fails if a key or a value cannot be marshalled, or if two keys of
// a source are the same in JSON. What Transient and cancellations have left is not part of it. Of a key that was forgotten and asked
// for again the last answer is: a replay gives that to every Get.
func (s *Session) Record() (*Recording, error) {
	s.guard.Lock()
	var record []func() error
	r := &Recording{Sources: map[string][]Answer{}}
	for _, t := range s.order {
		answers := t.recordLocked()
		record = append(record, func() (err error) {
			r.Sources[t.label()], err = answers()
			return err
		})
	}
	s.guard.Unlock()
	for _, f := range record {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// recordLocked returns what makes the record, which calls code that is not ours, without the guard.
func (t *tableOf[K, V]) recordLocked() func() ([]Answer, error) {
	entries := slices.Clone(t.did)
	for _, e := range t.m {
		entries = append(entries, e)
	}
	entries = slices.DeleteFunc(entries, func(e *entry[K, V]) bool { return e.state != done || e.passing })
	return func() ([]Answer, error) {
		answers := make([]Answer, len(entries))
		for i, e := range entries {
			var err error
			if answers[i], err = e.answer(); err != nil {
				return nil, fmt.Errorf("fetch: record of %s %v: %w", t.name, e.key, err)
			}
		}
		if t.write {
			return answers, nil
		}
		slices.SortFunc(answers, func(a, b Answer) int { return bytes.Compare(a.Key, b.Key) })
		for i := 1; i < len(answers); i++ {
			if bytes.Equal(answers[i].Key, answers[i-1].Key) {
				return nil, fmt.Errorf("fetch: record of %s: two keys are both %s", t.name, answers[i].Key)
			}
		}
		return answers, nil
	}
}

func (e *entry[K, V]) answer() (a Answer, err error) {
	if a.Key, err = json.Marshal(e.key); err != nil {
		return a, err
	}
	switch {
	case e.panicked:
		a.Panic, a.Error = true, e.err.Error()
	case errors.Is(e.err, ErrNotFound):
		a.NotFound = true
	case e.err != nil:
		a.Error = errors.Unwrap(e.err).Error() // it is an *Error
	default:
		a.Value, err = json.Marshal(e.v)
	}
	return a, err
}
