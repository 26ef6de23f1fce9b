// Blog is the example of fetch/README.md in which two Gets do not need each other.
package main

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/fetch"
)

type (
	User struct{ Name string }
	Post struct {
		ID, Author int
		Title      string
	}
)

var users = fetch.ByMap("users", func(ctx context.Context, ids []int) (map[int]User, error) {
	m := make(map[int]User)
	for _, id := range ids {
		m[id] = User{fmt.Sprint("user ", id)}
	}
	return m, nil
})

var posts = fetch.ByMap("posts", func(ctx context.Context, ids []int) (map[int]Post, error) {
	m := make(map[int]Post)
	for _, id := range ids {
		m[id] = Post{id, 1, fmt.Sprint("post ", id)}
	}
	return m, nil
})

func greeting(ctx context.Context, reader, post int) (string, error) {
	u, err := users.Get(ctx, reader)
	if err != nil {
		return "", err
	}
	p, err := posts.Get(ctx, post)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s reads %s", u.Name, p.Title), nil
}

func main() {
	err := fetch.Run(context.Background(), func(ctx context.Context) error {
		text, err := greeting(ctx, 12, 7)
		fmt.Printf("%s: %d rounds\n", text, fetch.Of(ctx).Stats().Rounds)
		return err
	})
	if err != nil {
		panic(err)
	}
}
