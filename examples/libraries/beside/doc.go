// Package beside contains small programs, each written twice: name.go uses Braid, and name_usual.go is the usual solution without Braid.
// Both versions pass the same test. docs/programs.md compares the programs.
//
//	cd examples/libraries/beside && go test -v .     # prints the line counts of each pair
package beside
