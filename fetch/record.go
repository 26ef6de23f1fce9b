package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/braidgo/braid/internal/atomicx"
)

// A recorded indexes a Recording: it maps the name of a source, and then the JSON of a key, to the answers.
type recorded map[string]map[string][]Answer

// Record returns the answers that the session has received so far. Record fails if a key or a value cannot be marshalled, or if
// two keys of a source have the same JSON. Record omits transient errors, cancellations and the answers of Fresh sources. If a
// key was forgotten and requested again, only the last answer is recorded, and every Get of a replay returns that answer.
func (s *Session) Record() (*Recording, error) {
	s.guard.Lock()
	tables := slices.Clone(s.tables)
	requests := make([][]*request, len(tables))
	for i, t := range tables {
		requests[i] = slices.DeleteFunc(t.rememberedLocked(), func(q *request) bool { return q.state != done || q.passing })
	}
	s.guard.Unlock() // marshalling calls foreign code
	r := &Recording{Sources: map[string][]Answer{}}
	for i, t := range tables {
		answers, err := t.record(requests[i])
		if err != nil {
			return nil, err
		}
		r.Sources[t.name] = answers
	}
	return r, nil
}

func (t *table) record(qs []*request) ([]Answer, error) {
	answers := make([]Answer, len(qs))
	for i, q := range qs {
		key, value := t.pair(q)
		var err error
		if answers[i], err = answerOf(key, value, q.err); err != nil {
			return nil, fmt.Errorf("fetch: record of %s %v: %w", t.name, key, err)
		}
	}
	if t.write {
		return answers, nil
	}
	slices.SortFunc(answers, func(a, b Answer) int { return bytes.Compare(a.Key, b.Key) })
	for i := 1; i < len(answers); i++ {
		if bytes.Equal(answers[i].Key, answers[i-1].Key) {
			return nil, fmt.Errorf("fetch: record of %s: two keys have the same JSON %s", t.name, answers[i].Key)
		}
	}
	return answers, nil
}

func answerOf(key, value any, failure error) (a Answer, err error) {
	if a.Key, err = json.Marshal(key); err != nil {
		return a, err
	}
	var known *Error
	switch {
	case failure == nil:
		a.Value, err = json.Marshal(value)
	case errors.Is(failure, ErrNotFound):
		a.NotFound = true
	case errors.As(failure, &known):
		a.Error = known.Err.Error()
	default:
		a.Panic, a.Error = true, failure.Error()
	}
	return a, err
}

func newRecorded(r *Recording) recorded {
	p := recorded{}
	for name, answers := range r.Sources {
		byKey := map[string][]Answer{}
		for _, a := range answers {
			var k bytes.Buffer
			if json.Compact(&k, a.Key) == nil { // lookups use the compact form
				byKey[k.String()] = append(byKey[k.String()], a)
			}
		}
		p[name] = byKey
	}
	return p
}

// replay returns a load function that takes its answers from a Recording. If write is true, repeated calls with equal keys get
// successive answers.
func replay[K comparable, V any](of map[string][]Answer, write bool) func(ctx context.Context, b *Batch[K, V]) error {
	var mu atomicx.Mutex
	times := map[K]int{}
	return func(_ context.Context, b *Batch[K, V]) error {
		k := b.keys[0]
		n := 0
		if write {
			mu.Lock()
			n = times[k]
			times[k]++
			mu.Unlock()
		}
		text, err := json.Marshal(k)
		if err != nil {
			return err
		}
		answers := of[string(text)]
		if n >= len(answers) {
			return ErrNotRecorded
		}
		switch a := answers[n]; {
		case a.NotFound:
			return ErrNotFound
		case a.Panic:
			panic(a.Error)
		case a.Value == nil:
			return errors.New(a.Error)
		default:
			var v V
			if err := json.Unmarshal(a.Value, &v); err != nil {
				return fmt.Errorf("fetch: replay: %w", err)
			}
			b.Set(k, v)
		}
		return nil
	}
}
