//go:build !explore

package actor

// goroutine runs f on a goroutine, where a scheduler has refused it.
func goroutine(f func()) { go f() }
