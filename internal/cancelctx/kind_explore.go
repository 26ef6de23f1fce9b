//go:build explore

package cancelctx

import (
	"context"
	"reflect"
)

// AlsoLasting says that all contexts of the type of ctx are Lasting, as those of the model checker are.
func AlsoLasting(ctx context.Context) { lasting = append(lasting, reflect.TypeOf(ctx)) }
