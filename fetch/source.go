package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/latch"
)

// A Source is where values come from: a table, a service. It is made once, as a package variable or a field, by New, ByMap,
// BySlice or ByKey, and belongs to no session: each session has its own answers of it.
type Source[K comparable, V any] struct {
	name string
	load func(ctx context.Context, b *Batch[K, V]) error
	opts SourceOptions
	keys keys

	write bool                            // it is an Effect's
	close func(ctx context.Context) error // closes a Shared source; nil for others
}

// Close ends a Shared source: its batches are cancelled, and every later request fails with ErrEnded. It suspends the caller until all
// batches have returned, so what they use can be closed then. If ctx is done first, Close returns the error of the cancellation, but the
// source has ended even then. The batches of any other source end with their sessions: Close does nothing then.
func (src *Source[K, V]) Close(ctx context.Context) error {
	if src.close == nil {
		return nil
	}
	return src.close(ctx)
}

func chosen(options []SourceOptions) (c SourceOptions) {
	for _, o := range options {
		if o.MaxBatch < 0 || o.MaxOpen < 0 {
			panic("fetch: a limit of less than one")
		}
		c = SourceOptions{cmp.Or(o.MaxBatch, c.MaxBatch), cmp.Or(o.MaxOpen, c.MaxOpen), cmp.Or(o.Mode, c.Mode), o.Fresh || c.Fresh}
	}
	return c
}

// New makes a source. load is given the keys of a batch, all different, in the order of asking, and answers each with Set or
// Fail. A key without an answer fails with ErrNotFound. All tasks share the values.
//
// An error that load returns is the answer to all keys of the batch, even to keys that it has Set, since a statement that breaks off
// leaves values that are half read. Only a key that load has Failed keeps its own error. To fail some keys only, load must Fail
// these and return nil.
//
// load is called on a goroutine, where it may block, unless its Mode says otherwise. Its context has the values of the
// session's context, not of any caller's. It is cancelled when the session ends, or when every waiter for any of the keys has given
// up; the results are dropped then. A panic of load is raised in every task that waits, with the same value. load
// must not fetch: with its context a Get returns ErrInSource.
//
// The name is in errors, recordings and pictures. Two sources of one name in a session panic.
func New[K comparable, V any](name string, load func(ctx context.Context, b *Batch[K, V]) error, o ...SourceOptions) *Source[K, V] {
	if load == nil {
		panic("fetch: nil function")
	}
	return &Source[K, V]{name: name, load: load, opts: chosen(o), keys: keysOf(reflect.TypeFor[K]())}
}

// ByMap is New for a function that returns a map. A key that the map lacks is not found. An error of the function fails all keys,
// whatever the map has.
func ByMap[K comparable, V any](name string, load func(ctx context.Context, keys []K) (map[K]V, error), o ...SourceOptions) *Source[K, V] {
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
	}, o...)
}

// BySlice is New for a function that returns the values in the order of the keys. Another number of values is an error of all
// keys. The slice of keys is read only, as a function that sorts it would give each value to another key.
func BySlice[K comparable, V any](name string, load func(ctx context.Context, keys []K) ([]V, error), o ...SourceOptions) *Source[K, V] {
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
	}, o...)
}

// ByKey is New for a service that takes single keys: load is called for each key of a batch, on at most width goroutines.
func ByKey[K comparable, V any](name string, width int, load func(ctx context.Context, key K) (V, error), o ...SourceOptions) *Source[K, V] {
	if width < 1 {
		panic("fetch: ByKey of a width less than one")
	}
	if load == nil {
		panic("fetch: nil function")
	}
	return New(name, func(ctx context.Context, b *Batch[K, V]) error {
		var claimed atomicx.Int64
		n := min(width, len(b.keys))
		var all sync.WaitGroup
		var tasks *latch.Latch // takes the place of all
		if preempt.Explored() {
			tasks = latch.New(n)
		}
		var work func()
		work = func() {
			ended := false
			defer func() {
				switch {
				case !ended:
					goroutine(work) // load has ended its goroutine; there are more keys
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
	}, o...)
}

// one answers the i'th key with what f does.
func (b *Batch[K, V]) one(i int, f func() (V, error)) {
	var v V
	var err error
	outcome.Of(func() { v, err = f() }, func(o outcome.Outcome) {
		if o.Exited() {
			err = ErrAbandoned
		}
		b.b.mu.Lock()
		defer b.b.mu.Unlock()
		b.answer(i, v, err)
		if !o.Returned() && !o.Exited() {
			b.entry(i).throw(o.Value())
		}
	})
}

// Replace returns an Override: where Options.Use has it, load is called instead of the source's own function.
func (src *Source[K, V]) Replace(load func(ctx context.Context, b *Batch[K, V]) error) Override {
	if load == nil {
		panic("fetch: nil function")
	}
	return Override{of: src, load: load}
}

// An Effect is a write. Effects are batched like requests, but each Do is a write: nothing is remembered, and nothing is
// shared. They go out when only effects are pending. So all reads that do not come after the answer of an effect see the state
// before it. Reads that are open do not hold up an effect with Eager: they may see either state.
type Effect[K comparable, R any] struct{ src Source[K, R] }

// NewEffect makes an Effect, as New makes a Source. The keys of a batch may be equal: Set answers them in order.
func NewEffect[K comparable, R any](name string, do func(ctx context.Context, b *Batch[K, R]) error, o ...SourceOptions) *Effect[K, R] {
	x := &Effect[K, R]{*New(name, do, o...)}
	x.src.write = true
	return x
}

// Do has an effect done, and returns its result. It suspends its caller until its batch is back.
//
// If ctx is done first, or already, Do returns the error of the cancellation. An effect that is not sent by then never is; a sent
// effect goes on, and only the end of the session cancels it. A batch that waits for its turn, see MaxOpen, is not sent, and
// goes as a whole: its effects are dropped when nobody waits for any of them. Otherwise Do fails as Get does.
func (x *Effect[K, R]) Do(ctx context.Context, k K) (R, error) { return x.src.Get(ctx, k) }

// Replace returns an Override: where Options.Use has it, do is called instead of the effect's own function.
func (x *Effect[K, R]) Replace(do func(ctx context.Context, b *Batch[K, R]) error) Override {
	return x.src.Replace(do)
}

// Returns is embedded in a type of requests, and says the type of their answers, see Request.
type Returns[V any] struct{}

func (Returns[V]) returns(v V) {}

// Request is Get for a source whose keys are requests of several types: a pipeline of one backend, which takes all of them in one call.
// The type of a request says the type of its answer, by an embedded Returns:
//
//	type UserByID struct {
//		fetch.Returns[User]
//		ID int
//	}
//
//	u, err := fetch.Request(ctx, backend, UserByID{ID: 7}) // a User
//
// The source's function looks at the type of each key, and Sets a value of the type that it returns. A value of another type is an
// error. In a Recording two requests must not be the same in JSON: give each type a field with its name.
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
	case f.s.recorded != nil: // JSON has no types
		text, err := json.Marshal(x)
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		return v, err
	}
	return v, &Error{Source: src.name, Key: request, Err: fmt.Errorf("fetch: the answer is a %T, and not a %T", x, v)}
}

// Transient marks an error that is not to be remembered, by a session or by a Memo: the waiters get it, and the next Get makes a
// new request.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &transient{err}
}

type transient struct{ err error }

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

// passes reports whether err is not to be remembered.
func passes(err error) bool {
	return errors.As(err, new(*transient)) || errors.Is(err, context.Canceled)
}

// keys is a property of a type of keys.
type keys uint8

const (
	plain keys = iota // any of them can be in a map
	mixed             // an interface is in them, and what that holds may be a slice, say
)

func keysOf(t reflect.Type) keys {
	switch t.Kind() {
	case reflect.Interface:
		return mixed
	case reflect.Array:
		return keysOf(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if keysOf(t.Field(i).Type) == mixed {
				return mixed
			}
		}
	}
	return plain
}

// checkKey panics if k can be in no map, before there is a lock to be held.
func checkKey[K comparable](of keys, k K) {
	if of == mixed {
		var none map[K]struct{}
		_ = none[k]
	}
}
