package gid

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"
)

// The first Get of a process chooses the implementation. TestMain calls it before a test tries out others.
func TestMain(m *testing.M) {
	if first, want := Get(), Printed(); first != want {
		fmt.Printf("the first Get() = %d, the runtime prints %d\n", first, want)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Get compares its result with the id that the runtime prints. Without this check, a fifo could take every goroutine for its
// own, and lose tasks or hang.
func TestGetIsWhatTheRuntimePrints(t *testing.T) {
	if isRead := way.Load() == read; isRead == misread {
		t.Errorf("the fast way is used: %v; it misreads: %v", isRead, misread)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, want := Get(), Printed(); got != want {
				t.Errorf("Get() = %d, the runtime prints %d", got, want)
			}
		})
	}
	wg.Wait()
}

func TestAWrongOffsetIsRefusedAndToldOnce(t *testing.T) {
	defer way.Store(way.Load())
	for name, wrong := range map[string]func() int64{
		"constant":  func() int64 { return 1 },
		"neighbour": func() int64 { return Printed() + 1 },
		"zero":      func() int64 { return 0 },
	} {
		way.Store(unchecked)
		told := 0
		decide(wrong, func(string) { told++ })
		if way.Load() != printed || told != 1 {
			t.Errorf("%s: way %d, %d lines logged", name, way.Load(), told)
		}
		if got, want := Get(), Printed(); got != want {
			t.Errorf("%s: Get() = %d, the runtime prints %d", name, got, want)
		}
	}
	decide(Printed, func(string) { t.Error("a correct implementation is reported") })
	if way.Load() != read {
		t.Error("a correct implementation is refused")
	}
}

func TestStacksHasAnotherGoroutine(t *testing.T) {
	id, stop := make(chan int64), make(chan struct{})
	go waitHere(id, stop)
	defer close(stop)
	other, found := <-id, map[int64]int{}
	for id, trace := range Stacks() {
		found[id]++
		if waits := bytes.Contains(trace, []byte("waitHere(")); waits != (id == other) {
			t.Errorf("goroutine %d instead of %d:\n%s", id, other, trace)
		}
	}
	if found[other] != 1 || found[Get()] != 1 || found[0] != 0 {
		t.Errorf("%v has not %d and %d", found, other, Get())
	}
}

func waitHere(id chan<- int64, stop <-chan struct{}) {
	id <- Get()
	<-stop
}
