// Package fetchtest helps to test code that uses package fetch. The package has a source in memory that records its batches and
// can delay its answers, and an assertion about the number of rounds.
package fetchtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/braidgo/braid/fetch"
)

// A Source is a fetch.Source that answers from memory.
type Source[K comparable, V any] struct {
	*fetch.Source[K, V]
	answer func(k K) (V, error)

	mu      sync.Mutex
	batches [][]K
	gate    chan struct{} // batches wait until gate is closed, unless gate is nil
}

// New makes a source that answers each key k with the result of answer(k). If answer(k) fails with fetch.ErrNotFound, the
// source has no value for the key.
func New[K comparable, V any](name string, answer func(k K) (V, error), o fetch.SourceOptions) *Source[K, V] {
	s := &Source[K, V]{answer: answer}
	s.Source = fetch.New(name, s.Load, o)
	return s
}

// Load answers and records a batch. With it, the Replace of a source or an Effect of the program returns an Override for
// fetch.Options.Use: users.Replace(s.Load). An Effect that is replaced so writes nothing.
func (s *Source[K, V]) Load(ctx context.Context, b *fetch.Batch[K, V]) error {
	s.mu.Lock()
	s.batches = append(s.batches, slices.Clone(b.Keys()))
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, k := range b.Keys() {
		if v, err := s.answer(k); err == nil {
			b.Set(k, v)
		} else {
			b.Fail(k, err)
		}
	}
	return nil
}

// Batches returns the keys of each batch so far, in the order in which they were sent.
func (s *Source[K, V]) Batches() [][]K {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// Pause delays the answers to all batches that are sent from now on, until resume is called.
func (s *Source[K, V]) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return sync.OnceFunc(func() {
		s.mu.Lock()
		if s.gate == gate {
			s.gate = nil
		}
		s.mu.Unlock()
		close(gate)
	})
}

// AssertRounds fails the test unless the session has had exactly want rounds. The failure message includes the session's trace,
// if there is one.
func AssertRounds(t testing.TB, s *fetch.Session, want int) {
	t.Helper()
	stats := s.Stats()
	if stats.Rounds == want {
		return
	}
	if trace := s.Trace(); trace != nil {
		t.Errorf("%d rounds, want %d\n%s", stats.Rounds, want, trace)
	} else {
		t.Errorf("%d rounds, want %d: %+v", stats.Rounds, want, stats)
	}
}
