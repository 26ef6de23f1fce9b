//go:build !linux || (!amd64 && !arm64)

package simulation

// files is the part of a Node for the files of package os, for which there must be an overlay, on Linux.
type files struct{}

func (files) crash(*Node)    {}
func (files) powerOff(*Node) {}

func (g *guests) removeFiles() {}
