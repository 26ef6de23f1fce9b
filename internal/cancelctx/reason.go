package cancelctx

import (
	"context"
	"reflect"
)

// Reason returns the error for a wait whose context has ended with err and cause. The error matches both under errors.Is.
func Reason(err, cause error) error {
	switch {
	case err == nil: // a context that is done and has no error breaks its contract
		return context.Canceled
	case cause == nil, same(err, cause):
		return err
	}
	return &reason{err, cause}
}

// same reports whether a and b are equal. Unlike a == b, it does not panic if their type is not comparable.
func same(a, b error) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

type reason struct{ err, cause error }

func (r *reason) Error() string   { return r.cause.Error() }
func (r *reason) Unwrap() []error { return []error{r.cause, r.err} }
