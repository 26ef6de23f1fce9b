package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/fetch"
	"github.com/vikstrous/dataloadgen"
	"golang.org/x/sync/errgroup"
)

// These rows compare package fetch with dataloaders, and with a loop that collects the keys by hand. The work loads 5 posts for each of
// 1,000 users, and then the authors of the posts, in two batches. The item rows start a task for each user and each post. The bulk rows
// load the authors of a user's posts in one call.
const benchUsers, benchPosts = 1000, 5

// wait1 is the time for which a dataloader waits for more keys. The default of the library is 16 ms.
const wait1 = time.Millisecond

var benchIDs = func() []int {
	ids := make([]int, benchUsers)
	upTo(benchUsers, func(i int) { ids[i] = i })
	return ids
}()

// A source returns the posts for a batch of users, and the authors for a batch of posts, after a delay.
type source struct{ delay time.Duration }

var quickly, slow = source{}, source{delay: time.Millisecond}

func (s source) posts(_ context.Context, users []int) ([][]int, error) {
	time.Sleep(s.delay)
	out := make([][]int, len(users))
	for i, u := range users {
		out[i] = make([]int, benchPosts)
		for j := range out[i] {
			out[i][j] = (benchPosts*u + j) % benchUsers
		}
	}
	return out, nil
}

func (s source) authors(_ context.Context, ids []int) ([]int, error) {
	time.Sleep(s.delay)
	return ids, nil
}

// warmed returns a work function that performs one uncounted operation first. Otherwise the counted operations would begin with empty
// pools, because the other side's turn and a garbage collection precede them.
func warmed(f work) work {
	return func(n int) { f(1); restart(); f(n) }
}

// ourPosts returns a work function that loads posts and authors with package fetch.
func ourPosts(s source, bulk bool) work {
	posts, authors := fetch.BySlice("posts", s.posts, fetch.SourceOptions{}), fetch.BySlice("authors", s.authors, fetch.SourceOptions{})
	user := func(ctx context.Context, u int) (struct{}, error) {
		ps, err := posts.Get(ctx, u)
		if err == nil && bulk {
			_, err = authors.All(ctx, ps)
		} else if err == nil {
			_, err = fetch.Map(ctx, ps, authors.Get)
		}
		return struct{}{}, err
	}
	return again(func() {
		ok(fetch.Run(bg, func(ctx context.Context) error {
			_, err := fetch.Map(ctx, benchIDs, user)
			if err == nil && fetch.Of(ctx).Stats().Batches != 2 {
				err = errors.New("not two batches")
			}
			return err
		}, fetch.Options{}))
	})
}

// handPosts returns a work function that loads posts and authors with a loop that collects the keys.
func handPosts(s source) work {
	return again(func() {
		seen, ids := map[int]int{}, []int(nil)
		posts := must(s.posts(bg, benchIDs))
		for _, ps := range posts {
			for _, p := range ps {
				if _, ok := seen[p]; !ok {
					seen[p] = len(ids)
					ids = append(ids, p)
				}
			}
		}
		names, sum := must(s.authors(bg, ids)), 0
		for _, ps := range posts {
			for _, p := range ps {
				sum += names[seen[p]]
			}
		}
		check(sum > 0)
	})
}

// newLoader returns a dataloadgen loader for a batch function.
func newLoader[V any](batch func(context.Context, []int) ([]V, error), wait time.Duration) *dataloadgen.Loader[int, V] {
	return dataloadgen.NewLoader(func(ctx context.Context, ids []int) ([]V, []error) { vs, _ := batch(ctx, ids); return vs, nil },
		dataloadgen.WithWait(wait))
}

// loaderPosts returns a work function that loads posts and authors with two loaders of dataloadgen and a goroutine for each user. As with
// package fetch, each goroutine obtains the authors of the user's posts in order, or an error. If bulk is true, it calls LoadAll once;
// otherwise it starts a goroutine for each post.
func loaderPosts(s source, wait time.Duration, bulk bool) work {
	return again(func() {
		posts, authors := newLoader(s.posts, wait), newLoader(s.authors, wait)
		var users errgroup.Group
		for _, u := range benchIDs {
			users.Go(func() error {
				ps, err := posts.Load(bg, u)
				if err != nil {
					return err
				}
				if bulk {
					_, err = authors.LoadAll(bg, ps)
					return err
				}
				out := make([]int, len(ps))
				var each errgroup.Group
				for i, p := range ps {
					each.Go(func() (err error) { out[i], err = authors.Load(bg, p); return err })
				}
				return each.Wait()
			})
		}
		ok(users.Wait())
	})
}

var benchInts = fetch.BySlice("ints", source{}.authors, fetch.SourceOptions{})

// chainOurs performs n loads, one after the other.
func chainOurs(ctx context.Context, n int) { upTo(n, func(k int) { must(benchInts.Get(ctx, k)) }) }

func chainLoader(n int) work {
	return again(func() {
		l := newLoader(source{}.authors, wait1)
		upTo(n, func(k int) { must(l.Load(bg, k)) })
	})
}

// gets performs a Run with n dependent Gets. The function of the Run is made once, since its allocation is not one of the Run.
func gets(n int) work {
	chain := func(ctx context.Context) error { chainOurs(ctx, n); return nil }
	return again(func() { ok(fetch.Run(bg, chain, fetch.Options{})) })
}

// hits calls Get n times for a value that is already loaded.
func hits(n int) {
	ok(fetch.Run(bg, func(ctx context.Context) error {
		must(benchInts.Get(ctx, 1))
		restart()
		defer stop()
		times(n, func() { must(benchInts.Get(ctx, 1)) })
		return nil
	}, fetch.Options{}))
}

func loaderHits(n int) {
	l := newLoader(source{}.authors, time.Microsecond)
	ctx := context.Background()
	must(l.Load(ctx, 1))
	restart()
	times(n, func() { must(l.Load(ctx, 1)) })
}

// settled compares requests from plain goroutines, while the given number of other goroutines compute. A request is three dependent loads,
// as in a resolver of a GraphQL server. A loader that yields to other goroutines is delayed while they compute, but a loader with a timer
// is not.
func settled(busy int) opener {
	beside := func(f work) work {
		return func(n int) {
			var over atomic.Bool
			defer over.Store(true)
			for range busy {
				go func() {
					for !over.Load() {
					}
				}()
			}
			runtime.Gosched()
			restart()
			f(n)
			stop()
		}
	}
	return fixed(beside(again(func() {
		ctx, s := fetch.Open(bg, fetch.Options{})
		defer s.Close()
		chainOurs(ctx, 3)
	})), beside(chainLoader(3)))
}

// A webRequest renders a page of a blog, as in the examples of Marlow, Brandy, Coens and Purdy (2014), from four sources. The number of posts
// is distributed as sizes on the web often are: most pages have a few, and some have hundreds.
type webRequest struct {
	posts, views, infos *fetch.Source[int, int]
	list                *fetch.Source[int, []int]
	byline              func(ctx context.Context, id int) (int, error)
}

func newWebRequest(r *rand.Rand, o fetch.SourceOptions) *webRequest {
	all := make([]int, int(math.Exp(1.5+1.2*r.NormFloat64())))
	for i := range all {
		all[i] = i
	}
	echo := func(_ context.Context, keys []int) ([]int, error) { return keys, nil }
	return &webRequest{posts: fetch.BySlice("posts", echo, o), views: fetch.BySlice("views", echo, o), infos: fetch.BySlice("infos", echo, o),
		list: fetch.BySlice("list", func(_ context.Context, keys []int) ([][]int, error) {
			return slices.Repeat([][]int{all}, len(keys)), nil
		}, o)}
}

// written loads a post and the name of its author as a program does that nobody has looked at. rewritten is what braidvet -fix makes of it.
func (q *webRequest) written(ctx context.Context, id int) (int, error) {
	post, err := q.posts.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	author, err := q.infos.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	name, err := q.infos.Get(ctx, 1000+author%10)
	return post + name, err
}

func (q *webRequest) rewritten(ctx context.Context, id int) (int, error) {
	post, author, err := fetch.Two(ctx,
		func(ctx context.Context) (int, error) { return q.posts.Get(ctx, id) },
		func(ctx context.Context) (int, error) { return q.infos.Get(ctx, id) })
	if err != nil {
		return 0, err
	}
	name, err := q.infos.Get(ctx, 1000+author%10)
	return post + name, err
}

// render loads the newest posts and their authors, and in parallel the most popular posts with the views of all.
func (q *webRequest) render(ctx context.Context) error {
	newest := func(ctx context.Context) (int, error) {
		ids, err := q.list.Get(ctx, 0)
		if err == nil {
			_, err = fetch.Map(ctx, ids[:min(5, len(ids))], q.byline)
		}
		return 0, err
	}
	popular := func(ctx context.Context) (int, error) {
		ids, err := q.list.Get(ctx, 0)
		if err == nil {
			_, err = fetch.Map(ctx, ids, q.views.Get)
		}
		if err == nil {
			_, err = fetch.Map(ctx, ids[:min(5, len(ids))], q.posts.Get)
		}
		return 0, err
	}
	_, _, err := fetch.Two(ctx, newest, popular)
	return err
}

// webLatencies performs the requests, and returns their latencies in milliseconds, in order, and the number of calls of their sources and of
// rounds. A latency is a sum of what calls would take: of the longest call of each round, or of all calls if sequential is true. Each call
// has only one key then.
func webLatencies(requests int, sequential, rewritten bool) (all []float64, calls, rounds int) {
	r := rand.New(rand.NewPCG(1, 2)) // the requests are the same each time
	o := fetch.SourceOptions{Inline: true}
	if sequential {
		o.MaxBatch = 1
	}
	for range requests {
		took, sum, number := map[int]float64{}, 0.0, 0 // took holds the longest call of each round
		ok(fetch.Run(bg, func(ctx context.Context) error {
			q := newWebRequest(r, o)
			if q.byline = q.written; rewritten {
				q.byline = q.rewritten
			}
			err := q.render(ctx)
			calls, rounds = calls+number, rounds+fetch.Of(ctx).Stats().Rounds
			return err
		}, fetch.Options{OnBatch: func(ctx context.Context, b fetch.BatchInfo) (context.Context, func(error)) {
			call := 1 + 0.01*float64(b.Keys)
			took[b.Round] = max(took[b.Round], call)
			sum, number = sum+call, number+1
			return ctx, func(error) {}
		}}))
		if !sequential {
			sum = 0
			for _, call := range took {
				sum += call
			}
		}
		all = append(all, sum)
	}
	slices.Sort(all)
	return all, calls, rounds
}

var percentiles = []float64{5, 25, 50, 75, 95, 99}

// webRequests reproduces figures 6 and 7 of Marlow et al. (2014): the latencies of requests whose data are fetched concurrently, and one
// after another.
func webRequests(b *bench, x float64) (all []side) {
	names := []string{"Concurrently", "One after another", "After braidvet's change"}
	for i, name := range names {
		all = append(all, b.kept("requests: "+name, func() map[string]float64 {
			n, run := b.of(10_000, 20), map[string]float64{}
			took, calls, rounds := webLatencies(n, i == 1, i == 2)
			b.note(fmt.Sprintf("%s: %.1f calls of sources and %.1f rounds for each request.", name, float64(calls)/float64(n), float64(rounds)/float64(n)))
			for i, p := range percentiles {
				run[fmt.Sprint(i)] = took[int(p*float64(n-1)/100)]
			}
			return run
		}, fmt.Sprint(x)))
	}
	return all
}
