//go:build !linux

package main

import (
	"errors"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/netstack"
)

const openDirect = 0 // this system has no O_DIRECT

func newStack(*eventloop.Loop, string) (*netstack.Stack, error) {
	return nil, errors.New("-stack needs the TUN devices of Linux")
}
