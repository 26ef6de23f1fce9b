//go:build explore

package fifo

import "github.com/braidgo/braid/adapters/internal/runner"

// This file exports internals of a scheduler to the model checker. The model checker lies outside the directory
// adapters, so it cannot import the internal package runner.
type (
	// An Item is a task or a callback to run.
	Item = runner.Item
	// A Posting is a scheduler without coroutines, whose tasks park again after each step.
	Posting = runner.Posting
	// A Leased is a Runner with a lease, for the model checker.
	Leased = runner.Leased
	// An Emulated is a task of the checker that emulates a coroutine of a Leased.
	Emulated = runner.Emulated
)

// NewLeased returns a Leased with the given number of idle coroutines.
func NewLeased(coroutines int, careful bool) *Leased { return runner.NewLeased(coroutines, careful) }

// NewPosting returns a Posting with the given number of parked tasks.
func NewPosting(tasks int) *Posting { return runner.NewPosting(tasks) }

// An Inbox holds the Items that other goroutines send to a Runner.
type Inbox struct{ runner.Inbox }

// Push adds an Item to the Inbox, and reports whether the caller must wake the Runner.
func (in *Inbox) Push(it *Item) bool { wake, _ := in.Inbox.Push(it); return wake }
