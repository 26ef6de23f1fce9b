package prefetch

import (
	"runtime"
	"testing"
)

// TestAnyAddress fetches invalid addresses. A prefetch must not fault.
func TestAnyAddress(t *testing.T) {
	for _, p := range []uintptr{0, 1, 1 << 20, ^uintptr(0) >> 17, ^uintptr(0)>>1 + 1, ^uintptr(0)} {
		line(p)
		lines(p)
		task(&Task{p, p})
		Pointer(&p)
	}
	f := func() {}
	Func(&f)
	f = nil
	Func(&f)
	var x [128]byte
	Line[int](nil)
	Line(&x)
	Lines(&x)
}

func TestTask(t *testing.T) {
	var zero, mine, other Task
	zero.Fetch()
	mine.Begin()
	mine.Leave()
	done := make(chan bool)
	go func() {
		other.Begin()
		other.Leave()
		done <- true
	}()
	<-done
	mine.Fetch()
	other.Fetch() // a goroutine that has ended
	if mine.sp == other.sp {
		t.Error("two goroutines on one stack")
	}
	switch runtime.GOARCH {
	case "amd64", "arm64":
		if mine.g == 0 || other.g == 0 || mine.g == other.g {
			t.Errorf("the runtime's structures are at %#x and %#x", mine.g, other.g)
		}
	}
}
