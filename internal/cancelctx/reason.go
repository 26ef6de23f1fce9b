package cancelctx

import (
	"context"
	"reflect"
)

// Reason returns the error of a wait whose context has ended with err and cause. It matches both under errors.Is.
func Reason(err, cause error) error {
	switch {
	case err == nil: // a context that is done and has no error breaks its contract
		return context.Canceled
	case cause == nil, same(err, cause):
		return err
	}
	return &reason{err, cause}
}

// same compares two errors, which may be of a type that cannot be compared.
func same(a, b error) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

type reason struct{ err, cause error }

func (r *reason) Error() string   { return r.cause.Error() }
func (r *reason) Unwrap() []error { return []error{r.cause, r.err} }
