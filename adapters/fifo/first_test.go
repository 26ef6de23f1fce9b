package fifo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/atomicx"
)

// submitFirst submits functions from several goroutines as the first use of the package, and prints how many of them ran.
func submitFirst() {
	const goroutines, each = 8, 40_000
	time.AfterFunc(time.Minute, func() { fmt.Println("hangs"); os.Exit(1) })
	s := fifo.New(fifo.Options{})
	var ran atomicx.Int64
	var submitted sync.WaitGroup
	for range goroutines {
		submitted.Go(func() {
			for range each {
				_ = s.Go(func() { ran.Add(1) })
			}
		})
	}
	submitted.Wait()
	_ = s.Run(bg, func(context.Context) error { return nil })
	fmt.Println(ran.Load() - goroutines*each)
	os.Exit(0)
}

// Before the offset of the goroutine id is known, no goroutine may count as the scheduler's. Otherwise its tasks would be lost.
func TestTheFirstUseFindsOutWhoIsAsking(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FIFO_TEST=first")
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil || string(out) != "0\n" {
		t.Errorf("%v: %s tasks too many", err, out)
	}
}
