//go:build !unix

package eventloop_test

func cpu() int64 { return 0 }
