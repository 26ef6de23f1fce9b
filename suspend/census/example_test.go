package census_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// A task of fifo and a task of a pool transfer money in opposite directions.
func Example() {
	defer census.Start(census.Options{})()
	type account struct {
		mutex.Mutex
		amount int
	}
	savings, current := census.Name(new(account), "savings"), census.Name(new(account), "current")
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{}, 2)
	transfer := func(from, to *account, amount int) {
		from.Lock()
		defer from.Unlock()
		begun <- struct{}{}
		for len(begun) < 2 {
			suspend.Yield()
		}
		if to.LockContext(ctx) != nil {
			return
		}
		defer to.Unlock()
		from.amount, to.amount = from.amount-amount, to.amount+amount
	}
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	_ = pool.Go(func() { transfer(current, savings, 10) })
	_ = fifo.Run(context.Background(), func(context.Context) error {
		_ = suspend.Here().Go(func() { transfer(savings, current, 20) })
		for len(census.Take().Deadlocks) == 0 {
			suspend.Yield()
		}
		_, text, _ := strings.Cut(masked(census.Take().String()), "\n\n")
		fmt.Println(text)
		cancel()
		return nil
	})
	// Unordered output:
	// deadlock: 2 tasks wait for each other; a context may end it
	//   goroutine 19 (fifo) waits for mutex.Mutex "current": mutex.Mutex.LockContext at census_test.Example.func1 (census/example_test.go:37), 1.2s
	//     goroutine 21 (workstealing) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
	//   goroutine 21 (workstealing) waits for mutex.Mutex "savings": mutex.Mutex.LockContext at census_test.Example.func1 (census/example_test.go:37), 1.2s
	//     goroutine 19 (fifo) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
	//
	// waiting
	//   goroutine 19 (fifo): mutex.Mutex.LockContext at census_test.Example.func1 (census/example_test.go:37), 1.2s
	//     for mutex.Mutex "current"
	//       goroutine 21 (workstealing) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
	//     has held mutex.Mutex "savings" for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31); 1 waits for it
	//   goroutine 21 (workstealing): mutex.Mutex.LockContext at census_test.Example.func1 (census/example_test.go:37), 1.2s
	//     for mutex.Mutex "savings"
	//       goroutine 19 (fifo) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
	//     has held mutex.Mutex "current" for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31); 1 waits for it
	//
	// not waiting
	//   goroutine 18 (fifo), 1.2s old, of census_test.Example (census/example_test.go:46)
}

// masked replaces the numbers that differ from run to run.
func masked(text string) string {
	text = regexp.MustCompile(`goroutine \d+ \(fifo\), `).ReplaceAllString(text, "goroutine 18 (fifo), ")
	text = regexp.MustCompile(`goroutine \d+ \(fifo\)([^,])`).ReplaceAllString(text, "goroutine 19 (fifo)$1")
	text = regexp.MustCompile(`goroutine \d+ \(workstealing\)`).ReplaceAllString(text, "goroutine 21 (workstealing)")
	return regexp.MustCompile(`\d+(\.\d+)?(µs|ms|s)\b`).ReplaceAllString(text, "1.2s")
}

// The comment of the package quotes the example.
func TestThePackageQuotesTheExample(t *testing.T) {
	lines := func(file string) string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.NewReplacer("\t", "", " ", "").Replace(string(b))
	}
	example := lines("example_test.go")
	_, output, _ := strings.Cut(example, "//Unorderedoutput:\n")
	output, _, _ = strings.Cut(output, "//\n")
	require.Contains(t, lines("census.go"), output)
}
