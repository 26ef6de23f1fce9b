package runner

import (
	"testing"
	"unsafe"
)

// The order of the fields assumes that a Task begins at a cache line. The allocator ensures this only for sizes that are
// multiples of a line.
func TestATaskBeginsAtALine(t *testing.T) {
	if size := unsafe.Sizeof(Task{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 192 {
		t.Errorf("a Task has %d bytes", size)
	}
}
