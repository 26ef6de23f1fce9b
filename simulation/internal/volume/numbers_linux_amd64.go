package volume

import "syscall"

const (
	sysFstatat       = syscall.SYS_NEWFSTATAT
	sysSyncfs        = 306
	sysRenameat2     = 316
	sysCopyFileRange = 326
	sysStatx         = 332
	sysOpenat2       = 437
	sysFaccessat2    = 439
)
