// Braidvet finds mistakes in the use of Braid that compile, and that no test of a quiet machine shows.
//
//	go install github.com/braidgo/braid/braidvet/cmd/braidvet@latest
//	go vet -vettool=$(which braidvet) ./...
//	braidvet -fix ./... # and makes the changes that it suggests
//
// For golangci-lint it is a module plugin: see package plugin. What each analyzer looks for stands in package braidvet, and is printed by
// braidvet help.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/braidgo/braid/braidvet"
)

func main() { multichecker.Main(braidvet.All()...) }
