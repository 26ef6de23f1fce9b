// Package cores is a model of a machine with many cores, in virtual time. It decides questions for which no such machine is at hand, such as
// which form of a lock is the fastest on sixteen cores. The model always gives the same figures.
//
// The model contains cores, cache lines, and the part of the Go runtime that brings a goroutine to a core, but no collector, no allocator and
// no caches of limited size. The test prints the modelled figures beside those of the one run on sixteen processors
// (docs/maintainers/analysis.md), and fails if the times of a lock differ by a half:
//
//	go test -v ./internal/testrig/cores
package cores
