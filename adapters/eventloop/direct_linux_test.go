package eventloop_test

import "syscall"

func init() { direct = syscall.O_DIRECT }
