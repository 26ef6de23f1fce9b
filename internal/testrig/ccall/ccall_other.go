//go:build !cgo

package ccall

// Call is nil, because this build has no cgo.
var Call func(f func())
