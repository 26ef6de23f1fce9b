//go:build amd64 || arm64

package prefetch

func line(p uintptr)
func lines(p uintptr)
func goroutine(gp, sp uintptr)
func self() uintptr
