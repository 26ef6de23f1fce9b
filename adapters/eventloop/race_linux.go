//go:build race && !braid_portable

package eventloop

import (
	"runtime"
	"syscall"
	"unsafe"
)

// racing is true if the program is built for the race detector. A raw system call does not tell the detector that a
// write happens before the read that receives its bytes. Package syscall tells it, so each raw call is accompanied by a
// call of package syscall that has no other effect: a write to no file, or a read from an empty file.
const racing = true

var empty = func() int {
	fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("eventloop: " + err.Error())
	}
	return fd
}()

func raceRead(p []byte) {
	if len(p) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&p[0]), len(p))
	}
	_, _ = syscall.Read(empty, make([]byte, 1))
}

func raceWrite(p []byte) {
	if len(p) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&p[0]), len(p))
	}
	_, _ = syscall.Write(-1, nil)
}
