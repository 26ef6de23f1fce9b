//go:build !explore

package stm

// portion is the largest number of waiters that one critical section resumes, and of Vars to which it links a waiter.
const portion = 64

// narrow is the largest number of reads that one critical section may link before a wait. Beyond it, a transaction is wide.
const narrow = portion
