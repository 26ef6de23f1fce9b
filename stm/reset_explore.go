//go:build explore

package stm

// portion is 1 for the model checker, so that two waiters already need two portions.
const portion = 1

// narrow is 2 for the model checker, so that a transaction of three reads is wide.
const narrow = 2

// Reset removes the elder and the transactions that wait for it. The model checker calls Reset because it may abandon a run
// before the elder has stepped down.
func Reset() { elder, younger = nil, list{} }
