package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestScript(t *testing.T) {
	got, err := run(t.Context(), script, new(account), nil)
	if err != nil || got != "2178309 negative" {
		t.Error(got, err)
	}
}

// While Go holds the lock, the timers of the script run. Each script waits for its own deposit.
func TestLockIsShared(t *testing.T) {
	a := new(account)
	if err := a.mu.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := run(t.Context(), `(async () => {
		let order = []
		let tick = new Promise(done => setTimeout(() => { order.push("timer"); unlock(); done() }, 1))
		await Promise.all([tick, deposit(1).then(v => order.push(v)), deposit(2).then(v => order.push(v))])
		return order.join(" ")
	})()`, a, map[string]any{"unlock": a.mu.Unlock})
	if err != nil || got != "timer 1 3" && got != "timer 2 3" { // the second deposit may come just when the lock is free
		t.Error(got, err)
	}
}

// An error of Go passes through the script unchanged. An error of the script is returned as text.
func TestErrors(t *testing.T) {
	if _, err := run(t.Context(), `fib(-1)`, new(account), nil); !errors.Is(err, errNegative) {
		t.Error(err)
	}
	if _, err := run(t.Context(), `Promise.reject("no")`, new(account), nil); err == nil || err.Error() != "no" {
		t.Error(err)
	}
	if _, err := run(t.Context(), `throw new Error("at once")`, new(account), nil); err == nil || !strings.Contains(err.Error(), "at once") {
		t.Error(err)
	}
	if got, err := run(t.Context(), `6 * 7`, new(account), nil); err != nil || got != "42" {
		t.Error(got, err)
	}
}

// The end of a context ends a script's wait for Go, and Go's wait for a script that never settles.
func TestCancel(t *testing.T) {
	a := new(account)
	if err := a.mu.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.mu.Unlock()
	for _, script := range []string{`deposit(1)`, `new Promise(() => {})`} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := run(ctx, script, a, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(script, err)
		}
		cancel()
	}
	if a.balance != 0 {
		t.Error(a.balance)
	}
}
