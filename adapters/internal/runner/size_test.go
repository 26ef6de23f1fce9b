package runner

import (
	"testing"
	"unsafe"
)

// The allocator begins each at a cache line, which the order of the fields is made for, only where the size is of lines.
func TestATaskBeginsAtALine(t *testing.T) {
	if size := unsafe.Sizeof(Task{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 192 {
		t.Errorf("a Task has %d bytes", size)
	}
}
