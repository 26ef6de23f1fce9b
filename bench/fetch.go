package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"
	"github.com/vikstrous/dataloadgen"

	"github.com/braidgo/braid/fetch"
)

// Package fetch beside dataloaders, and beside a loop that collects the keys by hand. The work is 1,000 users, 5 posts each, and the
// authors of those: two batches. Item is a task for each user and each post; bulk asks for the authors of a user in one call.
var fetchRows = []row{
	fetchRow("fetch-chain10", "dataloadgen, wait 1 ms: 10 dependent loads", "ns", 0.01, 0.004, chainOurs, chainLoader),
	fetchRow("fetch-bulk-1ms", "a loop by hand, on a source of 1 ms", "ns", 2.5, 1.4,
		wall(ourPosts(time.Millisecond, bulkItem)), wall(handPosts(time.Millisecond))),
	fetchRow("fetch-bulk-1ms-loader", "dataloadgen, wait 1 ms, on a source of 1 ms", "ns", 1.0, 0.6,
		wall(ourPosts(time.Millisecond, bulkItem)), wall(loaderPosts(time.Millisecond, time.Millisecond, true))),
	fetchRow("fetch-item-cpu", "dataloadgen, wait 1 ms, goroutine each", "ns", 2.0, 0.8,
		cpu(ourPosts(0, oneItem)), cpu(loaderPosts(0, wait1, false))),
	fetchRow("fetch-item-wall", "dataloadgen, default wait 16 ms", "ns", 0.7, 0.3,
		wall(ourPosts(0, oneItem)), wall(loaderPosts(0, 16*time.Millisecond, false))),
	fetchRow("fetch-bulk-cpu", "dataloadgen, wait 1 ms", "ns", 1.2, 0.7,
		cpu(ourPosts(0, bulkItem)), cpu(loaderPosts(0, wait1, true))),
	fetchRow("fetch-bulk-allocs", "dataloadgen, wait 1 ms", "allocs", 1.2, 0.8,
		allocs(ourPosts(0, bulkItem)), allocs(loaderPosts(0, wait1, true))),
	fetchRow("fetch-item-gophers", "graph-gophers/dataloader, wait 1 ms: CPU", "ns", 0, 0,
		cpu(ourPosts(0, oneItem)), cpu(gophersPosts(0, time.Millisecond))),
	fetchRow("fetch-run", "10 µs: a Run with one Get", "ns", 1.0, 0.5, wall(oneGet), exactly(10_000)),
	fetchRow("fetch-run-allocs", "40: a Run with one Get", "allocs", 1.0, 0.5, allocs(oneGet), exactly(40)),
	fetchRow("fetch-run-empty", "3 µs: an empty Run", "ns", 1.0, 0.5, wall(emptyRun), exactly(3_000)),
	fetchRow("fetch-run-empty-allocs", "15: an empty Run", "allocs", 1.0, 0, allocs(emptyRun), exactly(15)),
	fetchRow("fetch-hit", "dataloadgen, a value that is there", "ns", 3.0, 2.0, hitOurs, hitLoader),
	fetchRow("fetch-trace", "the same without a trace: CPU", "ns", 2.0, 1.5,
		cpu(tracedPosts), cpu(ourPosts(0, oneItem))),
}

func fetchRow(id, against, unit string, must, aim float64, ours, peer side) row {
	return row{id: id, against: against, unit: unit, must: must, aim: aim, open: func(mode) (*sides, error) {
		return &sides{ours: ours, peer: peer}, nil
	}}
}

// A piece is some work, done once.
type piece func() error

// wall measures the time that a piece takes, cpu that of the processors, and allocs its allocations.
func wall(f piece) side {
	return func(d time.Duration) (float64, error) {
		begun, n := time.Now(), 0
		for n == 0 || time.Since(begun) < d {
			if err := f(); err != nil {
				return 0, err
			}
			n++
		}
		return float64(time.Since(begun)) / float64(n), nil
	}
}

func cpu(f piece) side {
	return func(d time.Duration) (float64, error) {
		if err := f(); err != nil { // the turn of the other side, and the collection after it, have taken what is kept for the next piece
			return 0, err
		}
		before, n := cpuTime(), 0
		for begun := time.Now(); n == 0 || time.Since(begun) < d; n++ {
			if err := f(); err != nil {
				return 0, err
			}
		}
		return max(1, float64(cpuTime()-before)/float64(n)), nil
	}
}

func allocs(f piece) side {
	return func(d time.Duration) (float64, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before) // which allocates some, too
		n := 0
		for begun := time.Now(); n < 5 || time.Since(begun) < d; n++ {
			if err := f(); err != nil {
				return 0, err
			}
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(n), nil
	}
}

// exactly is a peer that is a figure.
func exactly(v float64) side { return func(time.Duration) (float64, error) { return v, nil } }

// wait1 is the time for which a dataloader waits for more keys, where it is not the default of 16 ms.
const wait1 = time.Millisecond

const benchUsers, benchPosts = 1000, 5

var benchIDs = func() []int {
	ids := make([]int, benchUsers)
	for i := range ids {
		ids[i] = i
	}
	return ids
}()

func postsOf(delay time.Duration, users []int) [][]int {
	time.Sleep(delay)
	out := make([][]int, len(users))
	for i, u := range users {
		out[i] = make([]int, benchPosts)
		for j := range out[i] {
			out[i][j] = (benchPosts*u + j) % benchUsers
		}
	}
	return out
}

func authorsOf(delay time.Duration, ids []int) []int {
	time.Sleep(delay)
	return ids
}

var errBatches = errors.New("bench: not two batches")

// ourPosts does the work by fetch: f does that of one user.
func ourPosts(delay time.Duration, f func(ctx context.Context, posts *fetch.Source[int, []int], authors *fetch.Source[int, int], user int) error) piece {
	return func() error { return runPosts(fetch.Options{}, delay, f) }
}

func tracedPosts() error { return runPosts(fetch.Options{Trace: true}, 0, oneItem) }

func runPosts(o fetch.Options, delay time.Duration, f func(context.Context, *fetch.Source[int, []int], *fetch.Source[int, int], int) error) error {
	posts := fetch.BySlice("posts", func(_ context.Context, ids []int) ([][]int, error) { return postsOf(delay, ids), nil })
	authors := fetch.BySlice("authors", func(_ context.Context, ids []int) ([]int, error) { return authorsOf(delay, ids), nil })
	return o.Run(context.Background(), func(ctx context.Context) error {
		_, err := fetch.Map(ctx, benchIDs, func(ctx context.Context, u int) (struct{}, error) { return struct{}{}, f(ctx, posts, authors, u) })
		if err == nil && fetch.Of(ctx).Stats().Batches != 2 {
			err = errBatches
		}
		return err
	})
}

func oneItem(ctx context.Context, posts *fetch.Source[int, []int], authors *fetch.Source[int, int], user int) error {
	ps, err := posts.Get(ctx, user)
	if err == nil {
		_, err = fetch.Map(ctx, ps, authors.Get)
	}
	return err
}

func bulkItem(ctx context.Context, posts *fetch.Source[int, []int], authors *fetch.Source[int, int], user int) error {
	ps, err := posts.Get(ctx, user)
	if err == nil {
		_, err = authors.All(ctx, ps)
	}
	return err
}

// handPosts is the loop by hand.
func handPosts(delay time.Duration) piece {
	return func() error {
		seen, ids := map[int]int{}, []int(nil)
		posts := postsOf(delay, benchIDs)
		for _, ps := range posts {
			for _, p := range ps {
				if _, ok := seen[p]; !ok {
					seen[p] = len(ids)
					ids = append(ids, p)
				}
			}
		}
		names, sum := authorsOf(delay, ids), 0
		for _, ps := range posts {
			for _, p := range ps {
				sum += names[seen[p]]
			}
		}
		check(sum > 0)
		return nil
	}
}

// loaderPosts does the work by dataloadgen, with a goroutine for each user, and in bulk with one LoadAll, or else with a goroutine
// for each post. As with fetch, the goroutine of a user has the authors of its posts in the end, in order, or an error.
func loaderPosts(delay, wait time.Duration, bulk bool) piece {
	return func() error {
		posts := dataloadgen.NewLoader(func(_ context.Context, ids []int) ([][]int, []error) { return postsOf(delay, ids), nil }, dataloadgen.WithWait(wait))
		authors := dataloadgen.NewLoader(func(_ context.Context, ids []int) ([]int, []error) { return authorsOf(delay, ids), nil }, dataloadgen.WithWait(wait))
		ctx := context.Background()
		var all sync.WaitGroup
		var failed firstError
		for _, u := range benchIDs {
			all.Go(func() {
				ps, err := posts.Load(ctx, u)
				if bulk && err == nil {
					_, err = authors.LoadAll(ctx, ps)
				} else if err == nil {
					_, err = each(ps, func(p int) (int, error) { return authors.Load(ctx, p) })
				}
				failed.note(err)
			})
		}
		all.Wait()
		return failed.err
	}
}

// gophersPosts does it by graph-gophers/dataloader, with a goroutine for each user and post.
func gophersPosts(delay, wait time.Duration) piece {
	return func() error {
		posts := dataloader.NewBatchedLoader(func(_ context.Context, ids []int) []*dataloader.Result[[]int] {
			return results(postsOf(delay, ids))
		}, dataloader.WithWait[int, []int](wait))
		authors := dataloader.NewBatchedLoader(func(_ context.Context, ids []int) []*dataloader.Result[int] {
			return results(authorsOf(delay, ids))
		}, dataloader.WithWait[int, int](wait))
		ctx := context.Background()
		var all sync.WaitGroup
		var failed firstError
		for _, u := range benchIDs {
			all.Go(func() {
				ps, err := posts.Load(ctx, u)()
				if err == nil {
					_, err = each(ps, func(p int) (int, error) { return authors.Load(ctx, p)() })
				}
				failed.note(err)
			})
		}
		all.Wait()
		return failed.err
	}
}

// each calls load for every post, on a goroutine each, and returns the results in order.
func each(posts []int, load func(post int) (int, error)) ([]int, error) {
	out, errs := make([]int, len(posts)), make([]error, len(posts))
	var all sync.WaitGroup
	for i, p := range posts {
		all.Go(func() { out[i], errs[i] = load(p) })
	}
	all.Wait()
	return out, errors.Join(errs...)
}

// A firstError keeps the first of the errors that goroutines meet.
type firstError struct {
	once sync.Once
	err  error
}

func (f *firstError) note(err error) {
	if err != nil {
		f.once.Do(func() { f.err = err })
	}
}

func results[V any](vs []V) []*dataloader.Result[V] {
	out := make([]*dataloader.Result[V], len(vs))
	for i, v := range vs {
		out[i] = &dataloader.Result[V]{Data: v}
	}
	return out
}

var benchInts = fetch.BySlice("ints", func(_ context.Context, ids []int) ([]int, error) { return ids, nil })

func chainOurs(d time.Duration) (float64, error) {
	return wall(func() error {
		return fetch.Run(context.Background(), func(ctx context.Context) error {
			for k := range 10 {
				if _, err := benchInts.Get(ctx, k); err != nil {
					return err
				}
			}
			return nil
		})
	})(d)
}

func chainLoader(d time.Duration) (float64, error) {
	return wall(func() error {
		l := dataloadgen.NewLoader(func(_ context.Context, ids []int) ([]int, []error) { return ids, nil }, dataloadgen.WithWait(time.Millisecond))
		for k := range 10 {
			if _, err := l.Load(context.Background(), k); err != nil {
				return err
			}
		}
		return nil
	})(d)
}

func oneGet() error {
	return fetch.Run(context.Background(), func(ctx context.Context) error { _, err := benchInts.Get(ctx, 1); return err })
}

func emptyRun() error {
	return fetch.Run(context.Background(), func(context.Context) error { return nil })
}

const hits = 1000

func hitOurs(d time.Duration) (per float64, err error) {
	err = fetch.Run(context.Background(), func(ctx context.Context) error {
		per, err = wall(func() error {
			for range hits {
				if _, err := benchInts.Get(ctx, 1); err != nil {
					return err
				}
			}
			return nil
		})(d)
		return err
	})
	return per / hits, err
}

func hitLoader(d time.Duration) (float64, error) {
	l := dataloadgen.NewLoader(func(_ context.Context, ids []int) ([]int, []error) { return ids, nil }, dataloadgen.WithWait(time.Microsecond))
	ctx := context.Background()
	per, err := wall(func() error {
		for range hits {
			if _, err := l.Load(ctx, 1); err != nil {
				return err
			}
		}
		return nil
	})(d)
	return per / hits, err
}
