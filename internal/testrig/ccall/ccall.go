//go:build cgo

// Package ccall calls a Go function from C, as a C library calls a hook. Files of tests cannot use cgo. Without a C compiler, Call is nil.
package ccall

/*
extern void braidCalled(void);
static void callGo(void) { braidCalled(); }
*/
import "C"

import "sync"

var (
	mu     sync.Mutex
	called []func()
)

// Call calls f in a function that C code calls. Other goroutines may call Call at the same time.
var Call = func(f func()) {
	mu.Lock()
	called = append(called, f)
	mu.Unlock()
	C.callGo()
}

//export braidCalled
func braidCalled() {
	mu.Lock()
	f := called[len(called)-1]
	called = called[:len(called)-1]
	mu.Unlock()
	f()
}
