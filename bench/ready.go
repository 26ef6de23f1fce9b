package main

import (
	"context"
	"sync"

	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/promise"
)

// To ask for a value that is there is an operation. The peer is a call of what sync.OnceValue returned. Either side has its
// object from elsewhere, as in a program: where the compiler sees the OnceValue made, it inlines the call altogether.
var readyRows = []row{
	pair("promise-ready", "sync.OnceValue, called again", 2.0, 1.0, func() (ours, peer func(int)) {
		p := promise.New[int]()
		must(0, p.Fill(1))
		ctx := context.Background()
		return func(n int) {
			sum := 0
			for range n {
				v, _ := p.Await(ctx)
				sum += v
			}
			check(sum == n)
		}, onceValue()
	}),
	pair("lazy-ready", "sync.OnceValue, called again", 2.0, 1.0, func() (ours, peer func(int)) {
		l := lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Restart)
		ctx := context.Background()
		must(l.Force(ctx))
		return func(n int) {
			sum := 0
			for range n {
				v, _ := l.Force(ctx)
				sum += v
			}
			check(sum == n)
		}, onceValue()
	}),
}

func onceValue() func(n int) {
	f := sync.OnceValue(func() int { return 1 })
	f()
	return func(n int) {
		sum := 0
		for range n {
			sum += f()
		}
		check(sum == n)
	}
}

// check keeps the work from being optimized away.
func check(ok bool) {
	if !ok {
		panic("bench: wrong result")
	}
}
