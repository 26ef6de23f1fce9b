//go:build amd64 || arm64

package prefetch

func line(p uintptr)
func lines(p uintptr)
func self() uintptr

//go:noescape
func task(t *Task)
