//go:build explore

package stm

// portion is the smallest, so that two waiters are two portions.
const portion = 1

// Reset forgets the elder. The model checker abandons runs at any point, also where the elder is about to step down.
func Reset() { elder, younger = nil, list{} }
