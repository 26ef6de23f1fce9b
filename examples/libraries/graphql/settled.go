package main

import (
	"context"

	graphql "github.com/graph-gophers/graphql-go"
)

// The library graph-gophers/graphql-go calls resolvers on goroutines. The resolvers call Get, and package fetch sends a batch when no more
// requests seem to be coming.

const text = `
	schema { query: Query }
	type Query { users: [User!]! }
	type User { name: String! posts: [Post!]! }
	type Post { title: String! author: Author! }
	type Author { name: String! }`

type root struct{}

func (*root) Users() []user {
	return each(userIDs(), func(id int) user { return user(id) })
}

type user int

func (u user) Name(ctx context.Context) (string, error) { return names.Get(ctx, int(u)) }

func (u user) Posts(ctx context.Context) ([]post, error) {
	ps, err := posts.Get(ctx, int(u))
	out := make([]post, len(ps))
	for i, p := range ps {
		out[i] = post{p}
	}
	return out, err
}

type post struct{ p Post }

func (p post) Title() string { return p.p.Title }

func (p post) Author(ctx context.Context) (author, error) {
	name, err := authors.Get(ctx, p.p.Author)
	return author(name), err
}

type author string

func (a author) Name() string { return string(a) }

func gophers() answerer {
	s := graphql.MustParseSchema(text, &root{}, graphql.MaxParallelism(10_000))
	return func(ctx context.Context, query string) any { return s.Exec(ctx, query, "", nil) }
}
