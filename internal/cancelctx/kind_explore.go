//go:build explore

package cancelctx

import (
	"context"
	"reflect"
)

// AlsoLasting makes Lasting report true for all contexts of ctx's type. The model checker calls it for its own contexts.
func AlsoLasting(ctx context.Context) { lasting = append(lasting, reflect.TypeOf(ctx)) }
