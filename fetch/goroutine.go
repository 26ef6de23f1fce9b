//go:build !explore

package fetch

// goroutine runs f on a goroutine of its own.
func goroutine(f func()) { go f() }
