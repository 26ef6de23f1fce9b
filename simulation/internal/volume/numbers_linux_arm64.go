package volume

import "syscall"

const (
	sysFstatat       = syscall.SYS_FSTATAT
	sysSyncfs        = 267
	sysRenameat2     = 276
	sysCopyFileRange = 285
	sysStatx         = 291
	sysOpenat2       = 437
	sysFaccessat2    = 439
)
