package main

import (
	"context"
	"runtime"
	"time"

	"github.com/vikstrous/dataloadgen"

	"github.com/braidgo/braid/fetch"
)

// Requests of goroutines that are no tasks: three loads that depend on each other, as one resolver of a GraphQL server makes them, beside
// goroutines that compute. A wait that lets others run first is as long as the others want. A timer is not.
var settledRows = []row{
	besideBusy("fetch-settled-idle", 0),
	besideBusy("fetch-settled-busy2", 2),
	besideBusy("fetch-settled-busy8", 8),
}

func besideBusy(id string, busy int) row {
	return row{id: id, against: "dataloadgen, wait 1 ms: 3 dependent loads", unit: "ns", must: 1.0, aim: 0.5, cold: true, open: func(m mode) (*sides, error) {
		return &sides{ours: beside(busy, settledChain), peer: beside(busy, loaderChain)}, nil
	}}
}

// beside measures a piece beside goroutines that compute.
func beside(busy int, f piece) side {
	return func(d time.Duration) (float64, error) {
		over := make(chan struct{})
		defer close(over)
		for range busy {
			go func() {
				for x := 0; ; x++ {
					if x&0xffff == 0 {
						select {
						case <-over:
							return
						default:
						}
					}
				}
			}()
		}
		runtime.Gosched()
		return wall(f)(d)
	}
}

const loads = 3

func settledChain() error {
	ctx, s := fetch.Open(context.Background(), fetch.Options{})
	defer s.Close()
	for k := range loads {
		if _, err := benchInts.Get(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func loaderChain() error {
	l := dataloadgen.NewLoader(func(_ context.Context, ids []int) ([]int, []error) { return ids, nil }, dataloadgen.WithWait(wait1))
	for k := range loads {
		if _, err := l.Load(context.Background(), k); err != nil {
			return err
		}
	}
	return nil
}
