package fetchtest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/fetch/fetchtest"
)

// A reporter records failures.
type reporter struct {
	testing.TB
	failures []string
}

func (r *reporter) Helper() {}
func (r *reporter) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func double(k int) (int, error) {
	if k < 0 {
		return 0, fetch.ErrNotFound
	}
	return 2 * k, nil
}

func TestAssertRounds(t *testing.T) {
	src := fetchtest.New("double", double, fetch.SourceOptions{})
	err := fetch.Run(t.Context(), func(ctx context.Context) error {
		for i := range 3 {
			if _, err := src.Get(ctx, i); err != nil {
				return err
			}
		}
		r := &reporter{TB: t}
		fetchtest.AssertRounds(r, fetch.Of(ctx), 3)
		require.Empty(t, r.failures)
		fetchtest.AssertRounds(r, fetch.Of(ctx), 1)
		require.Len(t, r.failures, 1)
		require.Contains(t, r.failures[0], "3 rounds, want 1")
		require.Contains(t, r.failures[0], "fetched by one task in a loop at fetchtest_test.go")
		return nil
	}, fetch.Options{Trace: true})
	require.NoError(t, err)
	require.Equal(t, [][]int{{0}, {1}, {2}}, src.Batches())
}

func TestInsteadOfTheRealSource(t *testing.T) {
	real := fetch.ByMap("users", func(context.Context, []int) (map[int]int, error) { panic("no database in a test") }, fetch.SourceOptions{})
	src := fetchtest.New("unused", double, fetch.SourceOptions{})
	err := fetch.Run(t.Context(), func(ctx context.Context) error {
		v, err := real.Get(ctx, 21)
		require.Equal(t, 42, v)
		require.NoError(t, err)
		_, ok, err := real.Find(ctx, -1)
		require.False(t, ok)
		return err
	}, fetch.Options{Use: []fetch.Override{real.Replace(src.Load)}})
	require.NoError(t, err)
	require.Equal(t, [][]int{{21}, {-1}}, src.Batches())
}

func ExampleAssertRounds() {
	t := new(testing.T) // stands for that of the test
	users := fetchtest.New("users", func(id int) (string, error) { return strings.Repeat("u", id), nil }, fetch.SourceOptions{})
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		names, err := fetch.Map(ctx, []int{1, 2, 3}, users.Get)
		fetchtest.AssertRounds(t, fetch.Of(ctx), 1)
		fmt.Println(names, users.Batches())
		return err
	}, fetch.Options{})
	// Output: [u uu uuu] [[1 2 3]]
}

// A test replaces the sources and effects of a program, and checks what the program has read and written.
func ExampleSource_Load() {
	users := fetch.ByMap("users", func(context.Context, []int) (map[int]string, error) { panic("no database in a test") }, fetch.SourceOptions{})
	visit := fetch.NewEffect("visit", func(context.Context, *fetch.Batch[int, string]) error { panic("no database in a test") }, fetch.SourceOptions{})
	greet := func(ctx context.Context) (string, error) { // the program under test
		name, err := users.Get(ctx, 7)
		if err != nil {
			return "", err
		}
		_, err = visit.Do(ctx, 7)
		return "hello " + name, err
	}

	answer := func(id int) (string, error) { return fmt.Sprint("user ", id), nil }
	read, written := fetchtest.New("read", answer, fetch.SourceOptions{}), fetchtest.New("written", answer, fetch.SourceOptions{})
	o := fetch.Options{Use: []fetch.Override{users.Replace(read.Load), visit.Replace(written.Load)}}
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		text, err := greet(ctx)
		fmt.Println(text, read.Batches(), written.Batches())
		return err
	}, o)
	// Output: hello user 7 [[7]] [[7]]
}

// When the context ends, the program does not wait for its batch any more.
func ExampleSource_Pause() {
	users := fetchtest.New("users", func(id int) (string, error) { return fmt.Sprint("user ", id), nil }, fetch.SourceOptions{})
	resume := users.Pause()
	defer resume()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for len(users.Batches()) == 0 { // a short timeout might pass before the batch on a busy machine
			runtime.Gosched()
		}
		cancel()
	}()
	err := fetch.Run(ctx, func(ctx context.Context) error {
		_, err := users.Get(ctx, 7)
		return err
	}, fetch.Options{})
	fmt.Println(err, users.Batches())
	// Output: context canceled [[7]]
}

// The end of one Pause does not end a later Pause.
func TestTwoPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := fetchtest.New("s", double, fetch.SourceOptions{})
		first, second := src.Pause(), src.Pause()
		first()
		done := make(chan error, 1)
		go func() {
			done <- fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, fetch.Options{})
		}()
		synctest.Wait()
		require.Empty(t, done, "the second Pause is over")
		second()
		require.NoError(t, <-done)
	})
}
