//go:build explore

package stm

// Reset forgets the elder. The model checker abandons runs at any point, also where the elder is about to step down.
func Reset() { elder, younger = nil, list{} }
