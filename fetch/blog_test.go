package fetch_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/fetch/fetchtest"
)

// This is the blog of the paper, section 2, with tables of its own. The page has a pane with the five latest posts, and a pane
// with the most popular posts and a list of topics.

type postInfo struct {
	ID    int
	Date  int
	Topic string
}

type blog struct {
	ids     *fetch.Source[struct{}, []int]
	info    *fetch.Source[int, *postInfo]
	content *fetch.Source[int, string]
	views   *fetch.Source[int, int]

	mu  sync.Mutex
	log []string
}

const numPosts = 11

func newBlog() *blog {
	b := new(blog)
	topics := []string{"go", "haskell", "ocaml"}
	b.ids = fetch.ByMap("postIds", func(_ context.Context, ks []struct{}) (map[struct{}][]int, error) {
		b.note("postIds", len(ks))
		ids := make([]int, numPosts)
		for i := range ids {
			ids[i] = i + 1
		}
		return map[struct{}][]int{{}: ids}, nil
	}, fetch.SourceOptions{})
	b.info = fetch.BySlice("postInfo", func(_ context.Context, ids []int) ([]*postInfo, error) {
		b.note("postInfo", len(ids))
		out := make([]*postInfo, len(ids))
		for i, id := range ids {
			out[i] = &postInfo{id, id * 7 % 12, topics[id%3]}
		}
		return out, nil
	}, fetch.SourceOptions{})
	b.content = fetch.New("postContent", func(_ context.Context, batch *fetch.Batch[int, string]) error {
		b.note("postContent", len(batch.Keys()))
		for _, id := range batch.Keys() {
			batch.Set(id, fmt.Sprint("content of ", id))
		}
		return nil
	}, fetch.SourceOptions{})
	b.views = fetch.ByMap("postViews", func(_ context.Context, ids []int) (map[int]int, error) {
		b.note("postViews", len(ids))
		out := map[int]int{}
		for _, id := range ids {
			out[id] = id * 5 % 13
		}
		return out, nil
	}, fetch.SourceOptions{})
	return b
}

func (b *blog) note(source string, keys int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprint(source, " ", keys))
}

func (b *blog) allInfo(ctx context.Context) ([]*postInfo, error) {
	ids, err := b.ids.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return fetch.Map(ctx, ids, b.info.Get)
}

func (b *blog) mainPane(ctx context.Context) (string, error) {
	ctx = fetch.Label(ctx, "main")
	infos, err := b.allInfo(ctx)
	if err != nil {
		return "", err
	}
	infos = slices.SortedFunc(slices.Values(infos), func(x, y *postInfo) int { return cmp.Compare(y.Date, x.Date) })[:5]
	texts, err := fetch.Map(ctx, infos, func(ctx context.Context, p *postInfo) (string, error) { return b.content.Get(ctx, p.ID) })
	return strings.Join(texts, "\n"), err
}

func (b *blog) popular(ctx context.Context) (string, error) {
	ctx = fetch.Label(ctx, "popular")
	ids, err := b.ids.Get(ctx, struct{}{})
	if err != nil {
		return "", err
	}
	views, err := fetch.Map(ctx, ids, b.views.Get)
	if err != nil {
		return "", err
	}
	byViews := slices.Clone(ids)
	slices.SortFunc(byViews, func(x, y int) int { return cmp.Compare(views[y-1], views[x-1]) })
	texts, err := fetch.Map(ctx, byViews[:5], b.details)
	return strings.Join(texts, "\n"), err
}

func (b *blog) details(ctx context.Context, id int) (string, error) {
	info, content, err := fetch.Two(ctx,
		func(ctx context.Context) (*postInfo, error) { return b.info.Get(ctx, id) },
		func(ctx context.Context) (string, error) { return b.content.Get(ctx, id) })
	return fmt.Sprint(info.Topic, ": ", content), err
}

func (b *blog) topics(ctx context.Context) (string, error) {
	ctx = fetch.Label(ctx, "topics")
	infos, err := b.allInfo(ctx)
	if err != nil {
		return "", err
	}
	count := map[string]int{}
	for _, p := range infos {
		count[p.Topic]++
	}
	return fmt.Sprint(count), nil
}

func (b *blog) page(ctx context.Context) (string, error) {
	left, main, err := fetch.Two(ctx, func(ctx context.Context) (string, error) {
		popular, topics, err := fetch.Two(ctx, b.popular, b.topics)
		return popular + "\n" + topics, err
	}, b.mainPane)
	return left + "\n" + main, err
}

// run renders the page in a Run, and returns it with the session's Stats.
func (b *blog) run(ctx context.Context, o fetch.Options) (page string, stats fetch.Stats, err error) {
	err = fetch.Run(ctx, func(ctx context.Context) (err error) {
		defer func() { stats = fetch.Of(ctx).Stats() }()
		page, err = b.page(ctx)
		return err
	}, o)
	return page, stats, err
}

// friends is the data of the paper's other example.
var friends = map[string][]string{
	"ann": {"gina", "hal"},
	"bob": {"gina", "ian"},
	"cid": {"hal", "jo"},
	"dan": {"gina"},
	"eve": {"gina", "jo"},
}

func newFriends() *fetchtest.Source[string, []string] {
	return fetchtest.New("friendsOf", func(who string) ([]string, error) { return friends[who], nil }, fetch.SourceOptions{})
}

func newDays() *fetchtest.Source[string, int] {
	return fetchtest.New("daysRegistered", func(who string) (int, error) { return map[string]int{"gina": 4, "hal": 5}[who], nil }, fetch.SourceOptions{})
}

func common(a, b []string) (both []string) {
	for _, x := range a {
		if slices.Contains(b, x) {
			both = append(both, x)
		}
	}
	return both
}
