//go:build amd64 || arm64

// Package syscall sends the system calls for files to a simulation: the overlay adds these files to it. A goroutine that
// belongs to a node makes them, and each close is sent, too. Package os and golang.org/x/sys/unix make all their calls for files by Syscall and Syscall6.
package syscall

import "unsafe"

// nodeFiles has the function of a simulation for files. It returns done if it has executed the call. The arguments that are pointers are in
// path, other, data and p instead of a.
//
//go:linkname nodeFiles
var nodeFiles struct {
	call func(trap uintptr, a *[6]uintptr, path, other string, data []byte, p any) (r uintptr, err Errno, done bool)
}

//go:linkname nodeHere
func nodeHere() uint32

// nodeCatches reports whether nodeSyscall makes the call.
//
//go:nosplit
func nodeCatches(trap uintptr) bool {
	return nodeHere() != 0 || trap == SYS_CLOSE && nodeFiles.call != nil
}

// nodeInside is a bit of a node: the goroutine is in nodeFiles.call, where it makes real calls. It keeps its P during these calls, as during a
// computation, so that no other goroutine runs.
const nodeInside = 1 << 31

// The arguments of a call that are pointers.
const (
	nodePath1 = 1 << iota // the first argument is a path
	nodePath2             // the second
	nodePath3
	nodePath4
	nodeData1 // the first and the second argument are a slice
	nodeData2 // the second and the third
	nodeData3
	nodeStat2
	nodeStat3
	nodeStatfs2
	nodeLock3
	nodeTimes3
	nodeCaught // any call for files
)

//go:nosplit
func nodeKind(trap uintptr) int {
	switch trap {
	case SYS_OPENAT, SYS_MKDIRAT, SYS_UNLINKAT, SYS_FCHMODAT, SYS_FCHOWNAT, SYS_FACCESSAT, nodeFaccessat2, SYS_MKNODAT, nodeOpenat2, nodeStatx:
		return nodeCaught | nodePath2
	case nodeFstatat:
		return nodeCaught | nodePath2 | nodeStat3
	case SYS_READLINKAT:
		return nodeCaught | nodePath2 | nodeData3
	case SYS_UTIMENSAT:
		return nodeCaught | nodePath2 | nodeTimes3
	case SYS_SYMLINKAT:
		return nodeCaught | nodePath1 | nodePath3
	case SYS_LINKAT, SYS_RENAMEAT, nodeRenameat2:
		return nodeCaught | nodePath2 | nodePath4
	case SYS_TRUNCATE, SYS_CHDIR:
		return nodeCaught | nodePath1
	case SYS_STATFS:
		return nodeCaught | nodePath1 | nodeStatfs2
	case SYS_GETCWD:
		return nodeCaught | nodeData1
	case SYS_READ, SYS_WRITE, SYS_PREAD64, SYS_PWRITE64, SYS_GETDENTS64:
		return nodeCaught | nodeData2
	case SYS_FSTAT:
		return nodeCaught | nodeStat2
	case SYS_FSTATFS:
		return nodeCaught | nodeStatfs2
	case SYS_FCNTL:
		return nodeCaught | nodeLock3
	case SYS_CLOSE, SYS_FSYNC, SYS_FDATASYNC, SYS_SYNC, nodeSyncfs, SYS_SYNC_FILE_RANGE, SYS_FTRUNCATE, SYS_FALLOCATE, SYS_FLOCK, SYS_DUP, SYS_DUP3,
		SYS_LSEEK, SYS_FCHMOD, SYS_FCHOWN, SYS_FCHDIR, SYS_MMAP, SYS_MUNMAP, SYS_MREMAP, SYS_MSYNC,
		nodeCopyFileRange, SYS_SENDFILE, SYS_SPLICE, SYS_READV, SYS_WRITEV, SYS_PREADV, SYS_PWRITEV:
		return nodeCaught
	}
	return 0
}

// nodeSyscall makes a call for a goroutine of a node. Its caller may have pointers to its stack in the arguments, so nodeSyscall turns them into
// pointers before the stack can move.
//
//go:nosplit
//go:nocheckptr
//go:uintptrkeepalive
func nodeSyscall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	kind := nodeKind(trap)
	switch {
	case kind == 0 || nodeFiles.call == nil:
		return nodeReal(trap, a1, a2, a3, a4, a5, a6)
	case nodeHere()&nodeInside != 0:
		return RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
	}
	var p1, p2, p3, p4 unsafe.Pointer
	if kind&(nodePath1|nodeData1) != 0 {
		p1 = unsafe.Pointer(a1)
	}
	if kind&(nodePath2|nodeData2|nodeStat2|nodeStatfs2) != 0 {
		p2 = unsafe.Pointer(a2)
	}
	if kind&(nodePath3|nodeData3|nodeStat3|nodeTimes3) != 0 || kind&nodeLock3 != 0 && nodeIsLock(a2) {
		p3 = unsafe.Pointer(a3)
	}
	if kind&nodePath4 != 0 {
		p4 = unsafe.Pointer(a4)
	}
	return nodeCall(kind, trap, a1, a2, a3, a4, a5, a6, p1, p2, p3, p4)
}

// nodeReal is Syscall6 without nodes.
//
//go:nosplit
//go:uintptrkeepalive
func nodeReal(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	runtime_entersyscall()
	r1, r2, err = RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
	runtime_exitsyscall()
	return
}

//go:nosplit
func nodeIsLock(cmd uintptr) bool {
	return cmd == F_GETLK || cmd == F_SETLK || cmd == F_SETLKW || cmd >= 36 && cmd <= 38 // F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW
}

func nodeCall(kind int, trap, a1, a2, a3, a4, a5, a6 uintptr, p1, p2, p3, p4 unsafe.Pointer) (r1, r2 uintptr, err Errno) {
	var path, other string
	var data []byte
	var p any
	switch {
	case kind&nodePath1 != 0:
		path = nodeText(p1)
	case kind&nodePath2 != 0:
		path = nodeText(p2)
	}
	switch {
	case kind&nodePath3 != 0:
		other = nodeText(p3)
	case kind&nodePath4 != 0:
		other = nodeText(p4)
	}
	switch {
	case kind&nodeData1 != 0:
		data = unsafe.Slice((*byte)(p1), a2)
	case kind&nodeData2 != 0:
		data = unsafe.Slice((*byte)(p2), a3)
	case kind&nodeData3 != 0:
		data = unsafe.Slice((*byte)(p3), a4)
	case kind&nodeStat2 != 0:
		p = (*Stat_t)(p2)
	case kind&nodeStat3 != 0:
		p = (*Stat_t)(p3)
	case kind&nodeStatfs2 != 0:
		p = (*Statfs_t)(p2)
	case kind&nodeTimes3 != 0:
		p = (*[2]Timespec)(p3)
	case p3 != nil && kind&nodeLock3 != 0:
		p = (*Flock_t)(p3)
	}
	r1, err, done := nodeFiles.call(trap, &[6]uintptr{a1, a2, a3, a4, a5, a6}, path, other, data, p)
	switch {
	case done && err != 0:
		return ^uintptr(0), 0, err
	case done:
		return r1, nodeSecond(a2, a3), 0
	}
	if p1 != nil {
		a1 = uintptr(p1)
	}
	if p2 != nil {
		a2 = uintptr(p2)
	}
	if p3 != nil {
		a3 = uintptr(p3)
	}
	if p4 != nil {
		a4 = uintptr(p4)
	}
	return nodeReal(trap, a1, a2, a3, a4, a5, a6)
}

// nodeText copies a string that ends with a 0.
func nodeText(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
