// Package beside has small programs, each beside the usual way to write it: name.go is with Braid, name_usual.go is not. Both pass the
// same test. docs/programs.md shows them.
//
//	cd examples/beside && go test -v .     # prints the lines of each pair
package beside
