package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/latch"
)

// A Source loads values by their keys, for example from a table of a database or from a service. Make a Source once, as a
// package variable or a field, with New, ByMap, BySlice or ByKey. A Source belongs to no session: each session remembers its
// own answers.
type Source[K comparable, V any] struct {
	name string
	load func(ctx context.Context, b *Batch[K, V]) error
	opts SourceOptions

	write  bool   // the source belongs to an Effect
	shared ending // ends a Shared source; nil for others
}

// Shutdown ends a Shared source: every later request fails with an error that is suspend.ErrEnded, and Shutdown suspends the caller until
// all batches have returned, so that the resources of the batches can be closed afterwards. If ctx is done first, Shutdown cancels the
// batches and returns the error of the cancellation, without waiting for them. For other sources Shutdown does nothing, because their
// batches end with their sessions.
func (src *Source[K, V]) Shutdown(ctx context.Context) error {
	if src.shared == nil {
		return nil
	}
	return src.shared.shutdown(ctx)
}

// Close ends a Shared source like Shutdown, but does not let its batches finish: Close cancels them. It suspends the caller until they
// have returned. This wait cannot be cancelled, so a batch must not close its source. The error is always nil. For other sources Close
// does nothing.
func (src *Source[K, V]) Close() error {
	if src.shared != nil {
		src.shared.close()
	}
	return nil
}

// An ending is an *exchange.
type ending interface {
	shutdown(ctx context.Context) error
	close()
}

func (o *SourceOptions) check() {
	if o.MaxBatch < 0 || o.MaxOpen < 0 {
		panic("fetch: negative MaxBatch or MaxOpen")
	}
}

// New makes a source. load gets a batch of distinct keys, in the order of the requests, and answers each key with Set or Fail.
// A key without an answer fails with ErrNotFound. All tasks share the values.
//
// An error that load returns is the answer to all keys of the batch, even to keys that load has Set, because a query that fails
// halfway may leave half-read values. Only a key that load has Failed keeps its own error. To fail only some keys, load must
// Fail these keys and return nil.
//
// load is called on a separate goroutine, where it may block, unless the source is Inline. load's context has the values of
// the session's context, not of a caller's context. This context is cancelled when the session ends, or when all waiters for
// keys of the batch have given up. In the second case, the results are dropped. A panic in load is raised in every waiting
// task, with the same value. If load calls runtime.Goexit, its keys fail with an error that is suspend.ErrAbandoned.
// load must not fetch: a Get with load's context returns ErrInSource.
//
// The name appears in errors, recordings and traces. A Get panics if its session already uses another source of the same name.
func New[K comparable, V any](name string, load func(ctx context.Context, b *Batch[K, V]) error, o SourceOptions) *Source[K, V] {
	if load == nil {
		panic("fetch: nil function")
	}
	o.check()
	return &Source[K, V]{name: name, load: load, opts: o}
}

// ByMap is like New, for a function that returns a map. A key that is not in the map fails with ErrNotFound. An error from the
// function fails all keys, even keys that are in the map.
func ByMap[K comparable, V any](name string, load func(ctx context.Context, keys []K) (map[K]V, error), o SourceOptions) *Source[K, V] {
	if load == nil {
		panic("fetch: nil function")
	}
	return New(name, func(ctx context.Context, b *Batch[K, V]) error {
		vs, err := load(ctx, b.keys)
		if err != nil {
			return err
		}
		b.b.mu.Lock()
		defer b.b.mu.Unlock()
		for i := range b.keys { // load may have sorted the keys
			if v, ok := vs[b.entry(i).key]; ok {
				b.answer(i, v, nil)
			}
		}
		return nil
	}, o)
}

// BySlice is like New, for a function that returns the values in the order of the keys. All keys fail if the number of values
// differs from the number of keys. The function must not modify the slice of keys: if it sorted the slice, values would go to
// the wrong keys.
func BySlice[K comparable, V any](name string, load func(ctx context.Context, keys []K) ([]V, error), o SourceOptions) *Source[K, V] {
	if load == nil {
		panic("fetch: nil function")
	}
	return New(name, func(ctx context.Context, b *Batch[K, V]) error {
		vs, err := load(ctx, b.keys)
		if err != nil {
			return err
		}
		if len(vs) != len(b.keys) {
			return fmt.Errorf("fetch: %d values for %d keys", len(vs), len(b.keys))
		}
		b.b.mu.Lock()
		defer b.b.mu.Unlock()
		for i, v := range vs {
			b.answer(i, v, nil)
		}
		return nil
	}, o)
}

// ByKey is like New, for a service that takes a single key in each call: load is called for each key of a batch, on at most
// width goroutines.
func ByKey[K comparable, V any](name string, width int, load func(ctx context.Context, key K) (V, error), o SourceOptions) *Source[K, V] {
	if width < 1 {
		panic("fetch: ByKey with a width less than one")
	}
	if load == nil {
		panic("fetch: nil function")
	}
	return New(name, func(ctx context.Context, b *Batch[K, V]) error {
		var claimed atomicx.Int64
		n := min(width, len(b.keys))
		var all sync.WaitGroup
		var tasks *latch.Latch // replaces the WaitGroup under suspendtest.Explore
		if preempt.Explored() {
			tasks = latch.New(n)
		}
		var work func()
		work = func() {
			ended := false
			defer func() {
				switch {
				case !ended:
					goroutine(work) // load called runtime.Goexit; more keys may be left
				case tasks != nil:
					tasks.CountDown()
				default:
					all.Done()
				}
			}()
			for i := int(claimed.Add(1)) - 1; i < len(b.keys); i = int(claimed.Add(1)) - 1 {
				b.one(i, func() (V, error) { return load(ctx, b.keys[i]) })
			}
			ended = true
		}
		for range n {
			all.Add(1)
			goroutine(work)
		}
		if tasks != nil {
			return tasks.Wait(context.Background())
		}
		all.Wait()
		return nil
	}, o)
}

// one sets the answer to the i'th key: the result, the panic or the Goexit of f.
func (b *Batch[K, V]) one(i int, f func() (V, error)) {
	var v V
	var err error
	outcome.Of(func() { v, err = f() }, func(o outcome.Outcome) {
		if o.Exited() {
			err = errAbandoned
		}
		b.b.mu.Lock()
		defer b.b.mu.Unlock()
		b.answer(i, v, err)
		if !o.Returned() && !o.Exited() {
			b.entry(i).throw(o.Value())
		}
	})
}

// Replace returns an Override for Options.Use. In a session with this Override, load is called instead of the source's own
// function.
func (src *Source[K, V]) Replace(load func(ctx context.Context, b *Batch[K, V]) error) Override {
	if load == nil {
		panic("fetch: nil function")
	}
	return Override{of: src, load: load}
}

// An Effect is a write. Effects are batched like requests, but each Do is a separate write: no result is remembered or shared.
// Effects are sent only when no reads are pending. Therefore all reads that do not come after the answer of an effect see the
// state before that effect. With Eager, open reads do not delay an effect, and may see either state.
type Effect[K comparable, R any] struct{ src Source[K, R] }

// NewEffect makes an Effect, as New makes a Source. The keys of a batch may be equal; Set answers equal keys in order.
func NewEffect[K comparable, R any](name string, do func(ctx context.Context, b *Batch[K, R]) error, o SourceOptions) *Effect[K, R] {
	x := &Effect[K, R]{*New(name, do, o)}
	x.src.write = true
	return x
}

// Do performs the effect for k and returns its result. Do suspends its caller until the batch has returned.
//
// If ctx is already done, or is done before the result arrives, Do returns the error of the cancellation. An effect that has
// not been sent by then is never sent. A sent effect continues, and only the end of the session cancels it. A batch that waits
// because of MaxOpen has not been sent; its effects are dropped together, when none of them has a waiter. Otherwise Do returns
// the same errors as Get.
func (x *Effect[K, R]) Do(ctx context.Context, k K) (R, error) { return x.src.Get(ctx, k) }

// Replace returns an Override for Options.Use. In a session with this Override, do is called instead of the effect's own
// function.
func (x *Effect[K, R]) Replace(do func(ctx context.Context, b *Batch[K, R]) error) Override {
	return x.src.Replace(do)
}

// Returns is embedded in a request type and declares the type of its answers, see Request.
type Returns[V any] struct{}

func (Returns[V]) returns(v V) {}

// Request is like Get, for a source whose keys are requests of several types, such as a backend that takes all kinds of
// requests in one call. A request type declares the type of its answers with an embedded Returns:
//
//	type UserByID struct {
//		fetch.Returns[User]
//		ID int
//	}
//
//	u, err := fetch.Request(ctx, backend, UserByID{ID: 7}) // u is a User
//
// The source's function switches on the type of each key and Sets a value of the declared type. Request returns an error if the
// value has another type. In a Recording, two requests must not have the same JSON, so give each request type a field with its
// name.
func Request[V any](ctx context.Context, src *Source[any, any], request interface{ returns(v V) }) (v V, err error) {
	x, err := src.Get(ctx, request)
	if err != nil {
		return v, err
	}
	v, ok := x.(V)
	f := frameOf(ctx)
	switch {
	case ok:
		return v, nil
	case f.s.recorded != nil: // JSON does not preserve the type
		text, err := json.Marshal(x)
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		return v, err
	}
	return v, &Error{Source: src.name, Key: request, Err: fmt.Errorf("fetch: the value is a %T, not a %T", x, v)}
}

// Transient marks an error that sessions and Memos must not remember. The current waiters get the error, and the next Get makes
// a new request.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &transient{err}
}

type transient struct{ err error }

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

// passes reports whether err must not be remembered.
func passes(err error) bool {
	return errors.As(err, new(*transient)) || errors.Is(err, context.Canceled)
}

// checkKey panics if k cannot be the key of a map: if k is NaN, or an interface that holds a slice, for example. A map finds a NaN
// only as a new key, so a session would never remember its answer. Callers call checkKey before they take any lock.
func checkKey[K comparable](k K) {
	if k != k { // the comparison panics if an interface in k holds an incomparable value
		panic("fetch: a key that is not equal to itself, such as NaN")
	}
}
