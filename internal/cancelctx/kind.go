package cancelctx

import (
	"context"
	"reflect"
	"slices"
)

// Lasting reports whether ctx is of a type that is known to keep its Done channel, and can be compared. Other contexts may be used
// again for another request, or stand for such a one.
func Lasting(ctx context.Context) bool {
	if _, ok := ctx.(*Context); ok {
		return true
	}
	return slices.Contains(lasting, reflect.TypeOf(ctx))
}

// lasting are the types of package context that add no value to a context of another type.
var lasting = func() []reflect.Type {
	some, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithTimeout(context.Background(), 0)
	cancel()
	return []reflect.Type{reflect.TypeOf(context.Background()), reflect.TypeOf(some), reflect.TypeOf(late)}
}()
