package cancelctx

import (
	"context"
	"reflect"
	"slices"
)

// Lasting reports whether ctx is of a type that is known to keep its Done channel, and can be compared. Other contexts may be used
// again for another request, or wrap such a context.
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
	types := []reflect.Type{}
	for _, ctx := range []context.Context{context.Background(), context.TODO(), some, late} {
		types = append(types, reflect.TypeOf(ctx))
	}
	return types
}()
