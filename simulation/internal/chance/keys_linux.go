//go:build amd64 || arm64

package chance

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// With BRAID_RANDOM=1, the process runs itself again as a child, waits for the child, and exits with its exit code. Before the child
// runs, the process replaces the child's 16 random bytes from the kernel (AT_RANDOM) by constants. The runtime makes the hash keys of
// maps from these bytes.
func init() {
	if os.Getenv("BRAID_RANDOM") != "1" {
		return
	}
	c := &exec.Cmd{Path: "/proc/self/exe", Args: os.Args, Env: append(os.Environ(), "BRAID_RANDOM=set"), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL} // the child stops at its first instruction
	err := c.Start()
	if err == nil {
		err = setRandom(c.Process.Pid)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chance: BRAID_RANDOM:", err)
		os.Exit(2)
	}
	_ = c.Wait()
	os.Exit(c.ProcessState.ExitCode())
}

// setRandom overwrites the random bytes of a process that has stopped, and lets the process continue. It must run on the thread that
// started the process, as an init function does.
func setRandom(pid int) error {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		return fmt.Errorf("the process has not stopped: %v, %#x", err, ws)
	}
	vector, err := os.ReadFile(fmt.Sprint("/proc/", pid, "/auxv"))
	for ; len(vector) >= 16; vector = vector[16:] {
		if binary.NativeEndian.Uint64(vector) == 25 { // AT_RANDOM
			if _, err := syscall.PtracePokeData(pid, uintptr(binary.NativeEndian.Uint64(vector[8:])), []byte("braid: no chance")); err != nil {
				return err
			}
			return syscall.PtraceDetach(pid)
		}
	}
	return fmt.Errorf("no AT_RANDOM: %v", err)
}
