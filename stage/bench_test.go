package stage_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/stage"
)

// The alternatives are measured in module bench.

func BenchmarkSubmit1(b *testing.B) {
	defer perCPU(b)()
	one := stage.New("one", double, stage.Options{Queue: 100})
	b.ReportAllocs()
	for b.Loop() {
		_ = one.Submit(bg, 1)
	}
	one.Shutdown(bg)
}

func BenchmarkSubmit10(b *testing.B) {
	defer perCPU(b)()
	ten := stage.Flow[int, int](stage.New("one", double, stage.Options{Queue: 100}))
	for range 9 {
		ten = stage.Pipe(ten, stage.New("one", double, stage.Options{Queue: 100}))
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = ten.Submit(bg, 1)
	}
}

func BenchmarkDoInline(b *testing.B) {
	defer perCPU(b)()
	one := stage.New("one", double, stage.Options{Queue: 100})
	b.ReportAllocs()
	for b.Loop() {
		_, _ = one.Do(bg, 1)
	}
}

func perCPU(b *testing.B) func() {
	start := processor.Used()
	return func() { b.ReportMetric(float64(processor.Used()-start)/float64(b.N), "cpu-ns/op") }
}
