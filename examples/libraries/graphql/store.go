package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/braidgo/braid/fetch"
)

const (
	numUsers   = 200
	numPosts   = 18 // posts per user
	numAuthors = 600
)

// A Post is a user's post about an author.
type Post struct {
	Title  string
	Author int
}

// statements counts the statements that a database would execute.
var statements atomic.Int64

// The next three functions simulate queries of database tables. Each call counts as one statement.

func userNames(_ context.Context, ids []int) ([]string, error) {
	statements.Add(1)
	return each(ids, func(id int) string { return fmt.Sprint("user ", id) }), nil
}

func userPosts(_ context.Context, ids []int) ([][]Post, error) {
	statements.Add(1)
	return each(ids, func(id int) []Post {
		posts := make([]Post, numPosts)
		for i := range posts {
			posts[i] = Post{Title: fmt.Sprint("post ", i), Author: (id*numPosts+i)%numAuthors + 1}
		}
		return posts
	}), nil
}

func authorNames(_ context.Context, ids []int) ([]string, error) {
	statements.Add(1)
	return each(ids, func(id int) string { return fmt.Sprint("author ", id) }), nil
}

func each[V any](ids []int, f func(id int) V) []V {
	vs := make([]V, len(ids))
	for i, id := range ids {
		vs[i] = f(id)
	}
	return vs
}

// The sources are created once. Each HTTP request has its own session.
var (
	names   = fetch.BySlice("users", userNames)
	posts   = fetch.BySlice("posts", userPosts)
	authors = fetch.BySlice("authors", authorNames)
)

func userIDs() []int {
	ids := make([]int, numUsers)
	for i := range ids {
		ids[i] = i + 1
	}
	return ids
}
