package main

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
)

// A division is work that an actor divides among two new actors, unless it is small. The functions divide and compute work on a pair of
// numbers.
type division struct {
	divide  func(a, b float64) (small bool, left, right [2]float64)
	compute func(a, b float64) float64
}

// fibDivision computes the Fibonacci number of a by recursion.
var fibDivision = division{
	func(a, _ float64) (bool, [2]float64, [2]float64) {
		return a <= 16, [2]float64{a - 1}, [2]float64{a - 2}
	},
	func(a, _ float64) float64 { return float64(fibonacci(int(a))) },
}

// integralDivision integrates a function from a to b by trapezoids.
var integralDivision = division{
	func(a, b float64) (bool, [2]float64, [2]float64) {
		middle := (a + b) / 2
		return b-a <= 1, [2]float64{a, middle}, [2]float64{middle, b}
	},
	func(a, b float64) (sum float64) {
		const steps = 500
		width := (b - a) / steps
		for i := range steps {
			x := a + float64(i)*width
			sum += width * (x*math.Sin(x) + (x+width)*math.Sin(x+width)) / 2
		}
		return sum
	},
}

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

// loop does the work with calls.
func (d division) loop(x [2]float64) float64 {
	small, left, right := d.divide(x[0], x[1])
	if small {
		return d.compute(x[0], x[1])
	}
	return d.loop(left) + d.loop(right)
}

// spawn does the work with an actor on p, which passes its result to the function reply.
func (d division) spawn(p suspend.Spawner, x [2]float64, reply func(float64)) {
	actor.Spawn(bg, p, func(_ context.Context, self *actor.Self[float64]) error {
		small, left, right := d.divide(x[0], x[1])
		if small {
			reply(d.compute(x[0], x[1]))
			return nil
		}
		to, sum := self.Ref(), 0.0
		send := func(v float64) { ok(to.Send(v)) }
		d.spawn(p, left, send)
		d.spawn(p, right, send)
		return self.React(func(v float64) error {
			sum = v
			return self.React(func(v float64) error { reply(sum + v); return nil })
		})
	}, actor.Options[float64]{})
}

// speedups reproduces figure 7 of Haller and Odersky (2009): actors that divide their work, on x processors. The result is how many times as
// fast they are as calls.
func speedups(b *bench, x float64) (all []side) {
	procs := int(x)
	for _, w := range []struct {
		division
		all [2]float64
	}{
		{fibDivision, [2]float64{float64(b.of(32, 18))}},
		{integralDivision, [2]float64{0, float64(b.of(4096, 4))}},
	} {
		all = append(all, func() float64 {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			b := &bench{mode: b.mode}
			defer b.end()
			p, result := b.pool(procs), make(chan float64, 1)
			start := time.Now()
			want := w.loop(w.all)
			calls := time.Since(start)
			start = time.Now()
			w.spawn(p, w.all, func(v float64) { result <- v })
			got := <-result
			check(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)))
			return float64(calls) / float64(time.Since(start))
		})
	}
	return all
}
