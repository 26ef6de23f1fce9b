//go:build !amd64 && !arm64

package syscall

// nodeCatches returns false, because the numbers and arguments of system calls differ here.
func nodeCatches(uintptr) bool { return false }

func nodeSyscall(_, _, _, _, _, _, _ uintptr) (r1, r2 uintptr, err Errno) { return 0, 0, ENOSYS }
