package rounds

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/fetch"
)

type Post struct{ ID, Author int }

var (
	posts   *fetch.Source[int, *Post]
	names   *fetch.Source[int, string]
	scores  *fetch.Memo[int, map[string]int]
	readers *fetch.Source[string, []fetch.Stats]
	errs    *fetch.Source[error, int]
)

func two(ctx context.Context, a, b int) (string, error) {
	p, err := posts.Get(ctx, a) // want `2 Gets in sequence need 2 rounds, although none uses another's result: fetch.Two needs one round`
	if err != nil {
		return "", err
	}
	n, err := names.Get(ctx, b)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(p.ID, n), nil
}

func three(c context.Context, k [3]int) error {
	p, err := posts.Get(c, k[0]) // want `3 Gets in sequence need 3 rounds, although none uses another's result: fetch.Three needs one round`
	if err != nil {
		return err
	}
	s, err := scores.Get(c, int(int64(k[1])+1))
	if err != nil {
		return err
	}
	// All of them.
	r, err := readers.Get(c, "all")
	if err != nil {
		return err
	}
	fmt.Println(p, s, r)
	return nil
}

func handled(ctx context.Context) (int, error) {
	p, err := posts.Get(ctx, 1) // want `2 Gets in sequence`
	if err != nil {
		return 0, err
	}
	n, err := names.Get(ctx, 2)
	if errors.Is(err, fetch.ErrNotFound) {
		n, err = "nobody", nil
	}
	fmt.Println(n)
	return p.ID, err
}

type session struct {
	context.Context
	user int
}

func concrete(ctx *session, fetch int) error {
	p, err := posts.Get(ctx, ctx.user) // want `2 Gets in sequence`
	if err != nil {
		return err
	}
	n, err := names.Get(ctx, fetch)
	if err != nil {
		return err
	}
	fmt.Println(p, n)
	return nil
}

func hidden(ctx context.Context) error {
	type Post string
	p, err := posts.Get(ctx, 1) // want `2 Gets in sequence`
	if err != nil {
		return err
	}
	n, err := (names.Get)(ctx, 2)
	if err != nil {
		return err
	}
	fmt.Println(p, n, Post("its type"))
	return nil
}

func generic[T comparable](ctx context.Context, a, b *fetch.Source[T, []T], k T) ([]T, error) {
	as, err := a.Get(ctx, k) // want `2 Gets in sequence`
	if err != nil {
		return nil, err
	}
	bs, err := b.Get(ctx, k)
	if err != nil {
		return nil, err
	}
	return append(as, bs...), nil
}

func onTheError(ctx context.Context) error {
	p, err := posts.Get(ctx, 1)
	if err != nil {
		return err
	}
	n, err := errs.Get(ctx, err)
	if err != nil {
		return err
	}
	fmt.Println(p, n)
	return nil
}

func whose(ctx context.Context) error {
	p, err := posts.Get(ctx, 1) // want `2 Gets in sequence`
	if err != nil {
		return fmt.Errorf("the post: %w", err)
	}
	n, err := names.Get(ctx, 2)
	if err != nil {
		return fmt.Errorf("the name: %w", err)
	}
	fmt.Println(p, n)
	return nil
}

func dependent(ctx context.Context) (*Post, error) {
	p, err := posts.Get(ctx, 1)
	if err != nil {
		return nil, err
	}
	n, err := names.Get(ctx, p.Author)
	if err != nil {
		return p, err
	}
	fmt.Println(n)
	return p, nil
}

func effects(ctx, other context.Context, ch chan int, key func() int) error {
	p, err := posts.Get(ctx, 1)
	if err != nil {
		return err
	}
	n, err := names.Get(ctx, key())
	if err != nil {
		return err
	}
	m, err := names.Get(other, 3)
	if err != nil {
		return err
	}
	fmt.Println("between")
	o, err := names.Get(other, <-ch)
	if err != nil {
		fmt.Println(err)
	}
	q, err := names.Get(other, 4)
	fmt.Println(p, n, m, o, q)
	return err
}
