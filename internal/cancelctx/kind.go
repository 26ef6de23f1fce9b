package cancelctx

import (
	"context"
	"reflect"
	"slices"
)

// Lasting reports whether the type of ctx is comparable, and is known never to change its Done channel. Contexts of other types may be
// reused for another request, or wrap such a context.
func Lasting(ctx context.Context) bool {
	if _, ok := ctx.(*Context); ok {
		return true
	}
	return slices.Contains(lasting, reflect.TypeOf(ctx))
}

// lasting lists the types of contexts from Background, TODO, WithCancel and WithTimeout. Contexts from WithValue are not Lasting, because
// they use the Done channel of a parent of any type.
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
