package edited

// The calls for files of package os, and of golang.org/x/sys/unix, go to a simulation if the calling goroutine belongs to a node.
var osEdits = []edit{
	{file: "syscall/syscall_linux.go", old: "	runtime_entersyscall()\n	// N.B.", changed: "	if nodeCatches(trap) {\n		return nodeSyscall(trap, a1, a2, a3, 0, 0, 0)\n	}\n	runtime_entersyscall()\n	// N.B."},
	{file: "syscall/syscall_linux.go", old: "	runtime_entersyscall()\n	r1, r2, err = RawSyscall6(trap, a1, a2, a3, a4, a5, a6)\n", changed: "	if nodeCatches(trap) {\n		return nodeSyscall(trap, a1, a2, a3, a4, a5, a6)\n	}\n	runtime_entersyscall()\n	r1, r2, err = RawSyscall6(trap, a1, a2, a3, a4, a5, a6)\n"},
	{file: "os/exec.go", old: "func Getpid() int { return syscall.Getpid() }", changed: "func Getpid() int {\n	if nodeHere() != 0 {\n		return nodePID\n	}\n	return syscall.Getpid()\n}"},
}
