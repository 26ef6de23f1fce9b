package syscall

const (
	nodeFstatat       = SYS_FSTATAT
	nodeSyncfs        = 267
	nodeRenameat2     = 276
	nodeCopyFileRange = 285
	nodeStatx         = 291
	nodeOpenat2       = 437
	nodeFaccessat2    = 439
)

// nodeSecond returns the second result of a call, a register that the kernel does not change.
func nodeSecond(a2, a3 uintptr) uintptr { return a2 }
