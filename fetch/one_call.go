package fetch

import (
	"context"
	"encoding/json"
	"fmt"
)

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
