package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/braidgo/braid/fetch"
)

const (
	numUsers   = 200
	numPosts   = 18 // posts of each user
	numAuthors = 600
)

// A Post is a post of a user, about an author.
type Post struct {
	Title  string
	Author int
}

// statements counts the statements that a database would see.
var statements atomic.Int64

// The next functions are the three tables. Each call is one statement.

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

// The sources are made once. Each request of the server is a session.
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
