//go:build !explore

package actor

// goroutine calls f on a new goroutine. It is used when a scheduler has refused a task.
func goroutine(f func()) { go f() }
