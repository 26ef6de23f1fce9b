package cancelctx

import (
	"context"
	"reflect"
)

// Lasting reports whether ctx is of a type that is known to keep its Done channel, and can be compared. Other contexts may be used
// again for another request, or stand for such a one.
func Lasting(ctx context.Context) bool {
	if _, ok := ctx.(*Context); ok {
		return true
	}
	switch reflect.TypeOf(ctx) {
	case backgroundType, cancelType, deadlineType:
		return true
	}
	return false
}

var backgroundType, cancelType, deadlineType = func() (background, cancelled, deadline reflect.Type) {
	some, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithTimeout(context.Background(), 0)
	cancel()
	return reflect.TypeOf(context.Background()), reflect.TypeOf(some), reflect.TypeOf(late)
}()
