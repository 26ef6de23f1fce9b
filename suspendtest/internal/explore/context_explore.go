//go:build explore

package explore

import "github.com/braidgo/braid/internal/cancelctx"

func init() { cancelctx.AlsoLasting(new(taskContext)) }
