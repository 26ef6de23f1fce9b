package census

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"weak"
)

// The names that were given, by the address of the object.
var names struct {
	mu sync.Mutex
	by map[uintptr]name
}

type name struct {
	text  string
	bytes uintptr // the object's size
	alive func() bool
}

// Name names an object in the census, and returns it: a Mutex, a channel, or a struct for all that it embeds. It keeps
// no reference to the object, so that the object can be collected. A later name of the same object replaces the first. Names are kept also while the census is off.
//
//	accounts := census.Name(new(mutex.Mutex), "accounts")
func Name[T any](object *T, text string) *T {
	if object == nil {
		panic("census: Name of nil")
	}
	at, ref := reflect.ValueOf(object).Pointer(), weak.Make(object)
	names.mu.Lock()
	defer names.mu.Unlock()
	if names.by == nil {
		names.by = map[uintptr]name{}
	}
	if old, ok := names.by[at]; !ok || !old.alive() {
		runtime.AddCleanup(object, forget, at)
	}
	names.by[at] = name{text, reflect.TypeFor[T]().Size(), func() bool { return ref.Value() != nil }}
	return object
}

// forget drops the name of an object that was collected, but not the name of a new object at the same address.
func forget(at uintptr) {
	names.mu.Lock()
	defer names.mu.Unlock()
	if n, ok := names.by[at]; ok && !n.alive() {
		delete(names.by, at)
	}
}

// named returns the objects that have names.
func named() (all extents[string]) {
	names.mu.Lock()
	defer names.mu.Unlock()
	for at, n := range names.by {
		if n.alive() {
			all.add(at, n.bytes, n.text)
		}
	}
	return all
}

// kindOf describes the operation of a Source: chanx.recv for a *chanx.recv[int].
func kindOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	text := strings.TrimPrefix(untyped(t.String()), "*")
	switch text {
	case "gate.looking":
		return "permits"
	case "suspend.timerOp":
		return "a timer"
	case "suspend.doneOp":
		return "a context"
	}
	return strings.TrimSuffix(text, "Source")
}

// auto is the name of an object that has none.
func auto(kind string, addr uintptr) string {
	if addr == 0 {
		return kind
	}
	return strings.TrimSpace(fmt.Sprintf("%s %#x", kind, addr))
}
