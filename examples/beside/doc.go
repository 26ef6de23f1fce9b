// Package beside has eight small programs, each beside the usual way to write it: name.go is with Braid, name_usual.go is not. Both pass
// the same test, and none is longer with Braid.
//
//	cd examples/beside && go test -v .     # prints the lines of each pair
package beside
