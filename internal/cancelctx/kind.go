package cancelctx

import (
	"context"
	"unsafe"
)

// A context of package context is recognised by the first of the two words of its interface, as a fast path asks for it each
// time: a comparison of types by package reflect takes as long as all the rest of an Err.

// An iface is the two words of an interface with methods.
type iface struct{ tab, data unsafe.Pointer }

func ifaceOf(ctx *context.Context) *iface { return (*iface)(unsafe.Pointer(ctx)) }

// Same reports whether a and b are the same context. It may overlook it if that is not a pointer. It compares contexts of
// any type, also of one that package runtime refuses to compare.
func Same(a, b context.Context) bool { return *ifaceOf(&a) == *ifaceOf(&b) }

// Background reports whether ctx is context.Background(), which is never done.
func Background(ctx context.Context) bool { return ifaceOf(&ctx).tab == backgroundTab }

// Lasting reports whether ctx is of a type of package context, or a Context, that is known to keep its Done channel. Err of
// such a context tells in half the time whether it is done. Other contexts may be used again for another request, or
// stand for such a one.
func Lasting(ctx context.Context) bool {
	tab := ifaceOf(&ctx).tab
	if tab == cancelTab || tab == backgroundTab || tab == deadlineTab {
		return true
	}
	_, ok := ctx.(*Context)
	return ok
}

var backgroundTab, cancelTab, deadlineTab = func() (background, cancelled, deadline unsafe.Pointer) {
	none := context.Background()
	some, cancel := context.WithCancel(none)
	cancel()
	late, cancel := context.WithTimeout(none, 0)
	cancel()
	return ifaceOf(&none).tab, ifaceOf(&some).tab, ifaceOf(&late).tab
}()
