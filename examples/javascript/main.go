// Javascript runs a script on goja whose await waits for Go: for a result of a pool of two workers, and for a lock that Go code
// holds. A Go task on the script's thread awaits a promise of the script.
//
//	cd examples/javascript && go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/dop251/goja"
	"github.com/dop251/goja_nodejs/eventloop"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
)

var errNegative = errors.New("negative")

func fib(n int) (int, error) {
	if n < 0 {
		return 0, errNegative
	}
	a, b := 0, 1
	for range n {
		a, b = b, a+b
	}
	return a, nil
}

// An account is used by scripts and by goroutines.
type account struct {
	mu      mutex.Mutex
	balance int
}

func (a *account) deposit(ctx context.Context, n int) (int, error) {
	if err := a.mu.Lock(ctx); err != nil { // the await of a script waits here
		return 0, err
	}
	defer a.mu.Unlock()
	a.balance += n
	return a.balance, nil
}

const script = `(async () => {
	let [a, b] = await Promise.all([fib(30), fib(31)])   // on two workers
	let balance = await deposit(a + b)
	try { await fib(-1) } catch (e) { return balance + " " + e.message }
})()`

// run runs a script with these globals, and returns the value of its promise.
func run(ctx context.Context, script string, a *account, globals map[string]any) (result string, err error) {
	js := eventloop.NewEventLoop()
	js.Start()
	defer js.Terminate()
	tasks := callback.New(jsLoop{js}, callback.Options{})
	pool := workstealing.New(workstealing.Options{Workers: 2})
	end := promise.New[string]()
	js.RunOnLoop(func(vm *goja.Runtime) {
		for name, v := range globals {
			_ = vm.Set(name, v)
		}
		b := &bridge{ctx, vm, tasks}
		_ = vm.Set("deposit", async(b, a.deposit))
		_ = vm.Set("fib", async(b, func(ctx context.Context, n int) (int, error) {
			return promise.Go(ctx, pool, func(context.Context) (int, error) { return fib(n) }).Await(ctx)
		}))
		_ = tasks.Go(func() { // the task runs on the thread of the script
			v, err := vm.RunString(script)
			if err == nil {
				v, err = b.await(ctx, v) // the task waits, but timers and other scripts run
			}
			if err != nil {
				end.Fail(err)
				return
			}
			end.Fill(v.String())
		})
	})
	result, err = end.Await(context.Background()) // end is filled even if ctx has ended
	return result, errors.Join(err, tasks.Close(), pool.Close())
}

func main() {
	fmt.Println(run(context.Background(), script, new(account), nil))
	if _, err := run(context.Background(), `fib(-1)`, new(account), nil); !errors.Is(err, errNegative) {
		log.Fatal("the error did not come back as itself: ", err)
	}
}
