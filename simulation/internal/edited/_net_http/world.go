// Package http gives each program of a simulation what a process has alone: the overlay adds this file to it.
//
// Several programs of a World run in one process, and a program that has crashed may run again. So the idle connections of a Transport, and
// the patterns of http.Handle and http.HandleFunc, belong to the program of the calling goroutine.
package http

import (
	"sync"
	_ "unsafe"
)

// worldProgram returns the number of the calling goroutine's program, or 0 outside of a simulation.
//
//go:linkname worldProgram net.worldProgram
func worldProgram() uint32

// worldMuxes has the *ServeMux of each program.
var worldMuxes sync.Map

// worldMux returns the ServeMux for the patterns of http.Handle.
func worldMux() *ServeMux {
	id := worldProgram()
	if id == 0 {
		return DefaultServeMux
	}
	m, _ := worldMuxes.LoadOrStore(id, new(ServeMux))
	return m.(*ServeMux)
}

// worldHandler returns the handler of a Server without a Handler. Patterns of init functions are in DefaultServeMux, and the longer pattern wins.
func worldHandler(r *Request) Handler {
	m := worldMux()
	_, own := m.Handler(r)
	if _, all := DefaultServeMux.Handler(r); len(all) > len(own) {
		return DefaultServeMux
	}
	return m
}
