package main

import (
	"context"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// The floors of fetch: the tasks and the waits of its work on a fifo, and nothing else. A user waits for a promise of its own. Then it
// waits for one more (bulk), or it and four new tasks wait for one of the promises of all authors each, with a context of their own (item).
var fetchFloors = []row{
	fetchRow("fetch-item-floor", "dataloadgen, wait 1 ms, goroutine each: CPU", "ns", 0, 0,
		cpu(floor(floorItem)), cpu(loaderPosts(0, wait1, false))),
	fetchRow("fetch-bulk-floor", "dataloadgen, wait 1 ms: CPU", "ns", 0, 0,
		cpu(floor(floorBulk)), cpu(loaderPosts(0, wait1, true))),
}

type promises []promise.Promise[int]

func (ps promises) resolve() {
	for i := range ps {
		ps[i].Resolve(i, nil)
	}
}

func floor(user func(ctx context.Context, u int, authors promises)) piece {
	return func() error {
		return fifo.New(fifo.Options{StallAfter: -1}).Run(context.Background(), func(ctx context.Context) error {
			posts, authors := make(promises, benchUsers), make(promises, benchUsers)
			ctx, end := cancel.New(ctx)
			defer end(nil)
			all := latch.New(benchUsers)
			for u := range benchUsers {
				must(0, suspend.Here().Go(func() {
					must(posts[u].Await(ctx))
					user(ctx, u, authors)
					all.CountDown()
				}))
			}
			suspend.Yield() // they wait
			posts.resolve()
			suspend.Yield() // the users wait again
			suspend.Yield() // and their tasks
			authors.resolve()
			return all.Wait(ctx)
		})
	}
}

func floorBulk(ctx context.Context, u int, authors promises) { must(authors[u].Await(ctx)) }

func floorItem(ctx context.Context, u int, authors promises) {
	ctx, end := cancel.New(ctx)
	defer end(nil)
	all := latch.New(benchPosts)
	for j := range benchPosts {
		one := func() {
			must(authors[(benchPosts*u+j)%benchUsers].Await(ctx))
			all.CountDown()
		}
		if j < benchPosts-1 {
			must(0, suspend.Here().Go(one))
		} else {
			one()
		}
	}
	check(all.Wait(ctx) == nil)
}
