//go:build !explore

package stm

// portion is how many waiters are resumed in one critical section.
const portion = 64
