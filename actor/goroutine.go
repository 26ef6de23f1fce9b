//go:build !explore

package actor

// goroutine calls f on a new goroutine, for a task that a scheduler has refused.
func goroutine(f func()) { go f() }
