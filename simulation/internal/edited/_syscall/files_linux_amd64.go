package syscall

const (
	nodeFstatat       = SYS_NEWFSTATAT
	nodeSyncfs        = 306
	nodeRenameat2     = 316
	nodeCopyFileRange = 326
	nodeStatx         = 332
	nodeOpenat2       = 437
	nodeFaccessat2    = 439
)

// nodeSecond returns the second result of a call, a register that the kernel does not change.
func nodeSecond(a2, a3 uintptr) uintptr { return a3 }
