//go:build !unix

package net

import "syscall"

type worldPipe struct{}

func (*worldPipe) read(Conn, func(uintptr) bool) error { return syscall.ENOTSUP }
func (*worldPipe) rest([]byte) int                     { return 0 }
func (*worldPipe) close()                              {}
