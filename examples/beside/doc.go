// Package beside has small programs, each beside the usual way to write it: name.go uses Braid, but name_usual.go does not. Both pass the
// same test. docs/programs.md shows them.
//
//	cd examples/beside && go test -v .     # prints the lines of each pair
package beside
