// Blog renders the example page of "There is no fork" (ICFP 2014) from an SQL database. The code gets each post separately, but the
// database executes only four statements. See README.md.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/braidgo/braid/fetch"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "blog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("blog", flag.ContinueOnError)
	sequential := flags.Bool("sequential", false, "no batches: one statement for each key, as with a cache only")
	record := flags.String("record", "", "record all loaded values in this `file`")
	replay := flags.String("replay", "", "use the values recorded in this `file`, without a database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := fetch.Options{Trace: true}
	b := newBlog(nil, fetch.SourceOptions{})
	if *replay != "" {
		text, err := os.ReadFile(*replay)
		if err != nil {
			return err
		}
		o.Replay = new(fetch.Recording)
		if err := json.Unmarshal(text, o.Replay); err != nil {
			return err
		}
	} else {
		db, err := openDatabase(ctx, out)
		if err != nil {
			return err
		}
		defer db.Close()
		options := fetch.SourceOptions{MaxBatch: 500} // SQLite limits the number of parameters
		if *sequential {
			options.Immediate = true
		}
		b = newBlog(db, options)
	}
	return fetch.Run(fetch.Label(ctx, "blog"), func(ctx context.Context) error {
		page, err := b.page(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s\n", page)
		s := fetch.Of(ctx)
		switch {
		case *sequential:
			fmt.Fprintf(out, "%d statements\n", s.Stats().Batches)
		case *replay != "":
			fmt.Fprintf(out, "%d statements for %d gets\n", s.Stats().Batches, s.Stats().Gets)
		default:
			fmt.Fprint(out, s.Trace())
		}
		if *record == "" {
			return nil
		}
		r, err := s.Record()
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(r, "", "\t")
		if err != nil {
			return err
		}
		return os.WriteFile(*record, text, 0o644)
	}, o)
}

// page renders popularPosts, topics and mainPane. These functions are independent of each other, but their gets share batches.
func (b *blog) page(ctx context.Context) (string, error) {
	left, main, err := fetch.Two(ctx, b.leftPane, b.mainPane)
	return left + "\n" + main, err
}

func (b *blog) leftPane(ctx context.Context) (string, error) {
	popular, topics, err := fetch.Two(ctx, b.popularPosts, b.topics)
	return popular + "\n" + topics, err
}

// mainPane returns the content of the five newest posts.
func (b *blog) mainPane(ctx context.Context) (string, error) {
	ctx = fetch.Label(ctx, "main")
	posts, err := b.allPosts(ctx)
	if err != nil {
		return "", err
	}
	slices.SortFunc(posts, func(x, y Post) int { return cmp.Compare(y.Date, x.Date) })
	texts, err := fetch.Map(ctx, posts[:5], func(ctx context.Context, p Post) (string, error) {
		return b.content.Get(ctx, p.ID)
	})
	return "Newest:\n  " + strings.Join(texts, "\n  "), err
}

// popularPosts returns the five posts with the most views.
func (b *blog) popularPosts(ctx context.Context) (string, error) {
	ctx = fetch.Label(ctx, "popular")
	ids, err := b.ids.Get(ctx, struct{}{})
	if err != nil {
		return "", err
	}
	views, err := fetch.Map(ctx, ids, b.views.Get)
	if err != nil {
		return "", err
	}
	most := make([]int, len(ids)) // indices into ids
	for i := range most {
		most[i] = i
	}
	slices.SortStableFunc(most, func(i, j int) int { return cmp.Compare(views[j], views[i]) })
	texts, err := fetch.Map(ctx, most[:5], func(ctx context.Context, i int) (string, error) {
		post, text, err := fetch.Two(ctx,
			func(ctx context.Context) (Post, error) { return b.info.Get(ctx, ids[i]) },
			func(ctx context.Context) (string, error) { return b.content.Get(ctx, ids[i]) })
		return fmt.Sprintf("%s (%s, %d views)", text, post.Topic, views[i]), err
	})
	return "Popular:\n  " + strings.Join(texts, "\n  "), err
}

// topics returns the number of posts on each topic.
func (b *blog) topics(ctx context.Context) (string, error) {
	ctx = fetch.Label(ctx, "topics")
	posts, err := b.allPosts(ctx)
	if err != nil {
		return "", err
	}
	count := map[string]int{}
	for _, p := range posts {
		count[p.Topic]++
	}
	var lines []string
	for _, topic := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%s %d", topic, count[topic]))
	}
	return "Topics: " + strings.Join(lines, ", "), nil
}

func (b *blog) allPosts(ctx context.Context) ([]Post, error) {
	ids, err := b.ids.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return fetch.Map(ctx, ids, b.info.Get)
}
