//go:build explore

package cancelctx

import (
	"context"
	"reflect"
)

// AlsoLasting says that all contexts of the type of ctx are Lasting, as the model checker's contexts are.
func AlsoLasting(ctx context.Context) { lasting = append(lasting, reflect.TypeOf(ctx)) }
