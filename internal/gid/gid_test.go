package gid

import (
	"bytes"
	"sync"
	"testing"

	"github.com/petermattis/goid"
)

func TestGetIsWhatTheRuntimePrints(t *testing.T) {
	Check()
	if slow.Load() {
		t.Error("the fast path does not fit this toolchain")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if fast, printed := Get(), Printed(); fast != printed {
				t.Errorf("Get() = %d, the runtime prints %d", fast, printed)
			}
		})
	}
	wg.Wait()
}

func TestCheckRefusesAWrongOffset(t *testing.T) {
	for name, wrong := range map[string]func() int64{
		"constant":  func() int64 { return 1 },
		"neighbour": func() int64 { return goid.Get() + 1 },
		"garbage":   func() int64 { return 0 },
	} {
		if agree(wrong, Printed) {
			t.Errorf("%s: accepted", name)
		}
	}
	if !agree(Printed, Printed) {
		t.Error("the printed identity refused")
	}
}

func TestGetFallsBackToThePrintedIdentity(t *testing.T) {
	Check()
	was := slow.Swap(true)
	defer slow.Store(was)
	if got := Get(); got != Printed() {
		t.Errorf("Get() = %d, the runtime prints %d", got, Printed())
	}
}

func TestStackFindsAnotherGoroutine(t *testing.T) {
	id, stop := make(chan int64), make(chan struct{})
	go waitHere(id, stop)
	defer close(stop)
	if trace := Stack(<-id); !bytes.Contains(trace, []byte("waitHere")) {
		t.Errorf("stack of the waiting goroutine:\n%s", trace)
	}
	if trace := Stack(-1); trace != nil {
		t.Errorf("stack of nobody:\n%s", trace)
	}
}

func waitHere(id chan<- int64, stop <-chan struct{}) {
	id <- Get()
	<-stop
}
