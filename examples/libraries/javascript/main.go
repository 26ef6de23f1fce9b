// Javascript runs a script on goja that awaits Go functions: one computes on a pool of two workers, the other waits for a lock that Go code
// may hold. A Go task on the script's thread awaits the script's promise.
//
//	cd examples/libraries/javascript && go run .
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

// An account is shared by scripts and goroutines.
type account struct {
	mu      mutex.Mutex
	balance int
}

func (a *account) deposit(ctx context.Context, n int) (int, error) {
	if err := a.mu.LockContext(ctx); err != nil { // a script's await waits here
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

// run runs a script with the given globals, and returns the value of the script's promise.
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
		_ = tasks.Go(func() { // runs on the script's thread
			v, err := vm.RunString(script)
			if err == nil {
				v, err = b.await(ctx, v) // suspends the task; timers and other scripts still run
			}
			if err != nil {
				end.Fail(err)
				return
			}
			end.Fill(v.String())
		})
	})
	result, err = end.Await(context.Background()) // the task fulfils this promise even if ctx has ended
	return result, errors.Join(err, tasks.Close(), pool.Close())
}

func main() {
	fmt.Println(run(context.Background(), script, new(account), nil))
	if _, err := run(context.Background(), `fib(-1)`, new(account), nil); !errors.Is(err, errNegative) {
		log.Fatal("the error was changed on its way through the script: ", err)
	}
}
