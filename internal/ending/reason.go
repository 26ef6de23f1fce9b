package ending

import (
	"context"
	"unsafe"
)

// Reason is the error with which fails what waits with a context that has ended with err and cause: it is both, in the
// sense of errors.Is.
func Reason(err, cause error) error {
	switch {
	case err == nil: // it says that it is done, so it breaks its contract
		return context.Canceled
	case cause == nil, same(err, cause):
		return err
	}
	return &reason{err, cause}
}

// same compares without panicking on errors that cannot be compared.
func same(a, b error) bool {
	type words [2]unsafe.Pointer
	return *(*words)(unsafe.Pointer(&a)) == *(*words)(unsafe.Pointer(&b)) || equal(a, b)
}

func equal(a, b error) (same bool) {
	defer func() { _ = recover() }()
	return a == b
}

type reason struct{ err, cause error }

func (r *reason) Error() string   { return r.cause.Error() }
func (r *reason) Unwrap() []error { return []error{r.cause, r.err} }
