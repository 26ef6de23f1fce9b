//go:build !explore

package stm

// portion is the largest number of waiters that one critical section resumes.
const portion = 64
