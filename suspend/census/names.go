package census

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"weak"
)

// names holds the names given by Name, keyed by the address of the object.
var names struct {
	mu sync.Mutex
	by map[uintptr]name
}

type name struct {
	text  string
	bytes uintptr // the size of the object
	alive func() bool
}

// Name names an object, such as a Mutex or a channel, in the census, and returns the object. The name of a struct also
// applies to all objects that the struct contains. Name keeps no reference to the object, so that the object can be
// garbage-collected. A later name for the same object replaces the first. Names are kept even while the census is off.
//
//	accounts := census.Name(new(mutex.Mutex), "accounts")
func Name[T any](object *T, text string) *T {
	if object == nil {
		panic("census: Name with a nil object")
	}
	at, ref := reflect.ValueOf(object).Pointer(), weak.Make(object)
	names.mu.Lock()
	defer names.mu.Unlock()
	if names.by == nil {
		names.by = map[uintptr]name{}
	}
	if old, ok := names.by[at]; !ok || !old.alive() {
		runtime.AddCleanup(object, dropName, at)
	}
	names.by[at] = name{text, reflect.TypeFor[T]().Size(), func() bool { return ref.Value() != nil }}
	return object
}

// dropName drops the name of an object that was garbage-collected, but not the name of a new object at the same address.
func dropName(at uintptr) {
	names.mu.Lock()
	defer names.mu.Unlock()
	if n, ok := names.by[at]; ok && !n.alive() {
		delete(names.by, at)
	}
}

// named returns the extents of all objects that have names.
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

// kindOf describes the operation of a Source by its type: chanx.recv for a *chanx.recv[int].
func kindOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	text := strings.TrimPrefix(untyped(t.String()), "*")
	switch text {
	case "gate.looking":
		return "permits"
	case "producer.Producer":
		return "the next value of a sequence"
	case "suspend.timerOp":
		return "a timer"
	case "suspend.doneOp":
		return "a context"
	}
	return strings.TrimSuffix(text, "Source")
}

// auto returns a name for an object that was not named.
func auto(kind string, addr uintptr) string {
	if addr == 0 {
		return kind
	}
	return strings.TrimSpace(fmt.Sprintf("%s %#x", kind, addr))
}
