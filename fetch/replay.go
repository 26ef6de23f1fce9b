package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A replay is a Recording to be looked up in: the answers of each source, by what its keys are in JSON.
type replay map[string]map[string][]Answer

func newReplay(r *Recording) replay {
	p := replay{}
	for name, answers := range r.Sources {
		byKey := map[string][]Answer{}
		for _, a := range answers {
			var k bytes.Buffer
			if json.Compact(&k, a.Key) == nil { // or nobody finds it
				byKey[k.String()] = append(byKey[k.String()], a)
			}
		}
		p[name] = byKey
	}
	return p
}

// replay answers a key from the recording. There is no batch, and nothing suspends.
func (t *tableOf[K, V]) replay(k K) (*entry[K, V], error) {
	e := t.recorded(k, 0)
	s := t.s
	s.guard.Lock()
	if s.ended {
		s.guard.Unlock()
		return nil, ErrEnded
	}
	if first := t.m[k]; first != nil {
		e = first
		s.stats.Shared++
	} else {
		t.m[k] = e
	}
	s.stats.Gets++
	s.guard.Unlock()
	return e, nil
}

func (t *tableOf[K, V]) replayAll(ks []K, got func(i int, v V, err error) error) error {
	for i, k := range ks {
		e, err := t.replay(k)
		if err != nil {
			return err
		}
		v, err := e.result()
		if err := got(i, v, err); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns the n'th answer to k.
func (t *tableOf[K, V]) recorded(k K, n int) *entry[K, V] {
	e := &entry[K, V]{t: t, key: k}
	e.keyed, e.state = e, done
	var answer *Answer
	text, err := json.Marshal(k)
	if err == nil {
		if answers := t.s.recorded[t.name][string(text)]; n < len(answers) {
			answer = &answers[n]
		} else {
			err = ErrNotRecorded
		}
	}
	switch {
	case err != nil:
	case answer.NotFound:
		err = ErrNotFound
	case answer.Panic:
		e.throw(answer.Error)
	case answer.Value == nil:
		err = errors.New(answer.Error)
	default:
		if err = json.Unmarshal(answer.Value, &e.v); err != nil {
			err = fmt.Errorf("fetch: replay: %w", err)
		}
	}
	if err != nil {
		e.err = &Error{Source: t.name, Key: k, Err: err}
	}
	return e
}
