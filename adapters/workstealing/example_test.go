package workstealing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Sort sorts the two halves of a slice at the same time.
func ExampleJoin() {
	p := workstealing.New(workstealing.Options{})
	defer p.Close()

	var sorted func(ctx context.Context, xs []string) ([]string, error)
	sorted = func(ctx context.Context, xs []string) ([]string, error) {
		if len(xs) < 2 {
			return xs, nil
		}
		left, right, err := workstealing.Join(ctx, p,
			func(ctx context.Context) ([]string, error) { return sorted(ctx, xs[:len(xs)/2]) },
			func(ctx context.Context) ([]string, error) { return sorted(ctx, xs[len(xs)/2:]) })
		return merge(left, right), err
	}

	xs, err := sorted(context.Background(), strings.Fields("the quick brown fox jumps over the lazy dog"))
	fmt.Println(xs, err)
	// Output: [brown dog fox jumps lazy over quick the the] <nil>
}

func merge(x, y []string) []string {
	var out []string
	for len(x) > 0 && len(y) > 0 {
		if x[0] > y[0] {
			x, y = y, x
		}
		out, x = append(out, x[0]), x[1:]
	}
	return slices.Concat(out, x, y)
}

// Two tasks wait for each other on a pool with a single worker.
func ExamplePool() {
	p := workstealing.New(workstealing.Options{Workers: 1})
	defer p.Close()

	question, answer := promise.New[int](), promise.New[int]()
	_ = p.Go(func() {
		q, _ := question.Await(context.Background()) // suspends the task; the worker runs others
		answer.Fill(2 * q)
	})
	_ = p.Go(func() {
		fmt.Println("on the pool:", suspend.Here() == suspend.Spawner(p))
		question.Fill(21)
	})
	fmt.Println(answer.Await(context.Background())) // suspends a goroutine
	// Output:
	// on the pool: true
	// 42 <nil>
}

func ExampleReduce() {
	p := workstealing.New(workstealing.Options{})
	defer p.Close()

	sum, err := workstealing.Reduce(context.Background(), p, 1, 1001, 0, 0,
		func(_ context.Context, lo, hi int) (sum int, err error) {
			for i := lo; i < hi; i++ {
				sum += i
			}
			return sum, nil
		},
		func(x, y int) int { return x + y })
	fmt.Println(sum, err)
	// Output: 500500 <nil>
}
