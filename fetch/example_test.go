package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/fetch/fetchtest"
)

type Post struct {
	ID     int
	Author int
}

type User struct {
	Name string
}

// A source is created once. Its function looks like that of a dataloader.
var users = fetch.ByMap("users", func(ctx context.Context, ids []int) (map[int]User, error) {
	fmt.Println("select * from users where id in", ids)
	found := map[int]User{}
	for _, id := range ids {
		found[id] = User{Name: fmt.Sprint("user ", id)}
	}
	return found, nil
}, fetch.SourceOptions{})

var posts = fetch.ByMap("posts", func(ctx context.Context, ids []int) (map[int]Post, error) {
	fmt.Println("select * from posts where id in", ids)
	found := map[int]Post{}
	for _, id := range ids {
		found[id] = Post{ID: id, Author: 10 + id%2}
	}
	return found, nil
}, fetch.SourceOptions{})

// A function calls Get for the values that it needs. It need not know about batches, nor about its callers.
func byline(ctx context.Context, id int) (string, error) {
	p, err := posts.Get(ctx, id)
	if err != nil {
		return "", err
	}
	u, err := users.Get(ctx, p.Author)
	return fmt.Sprintf("post %d by %s", p.ID, u.Name), err
}

func Example() {
	err := fetch.Run(context.Background(), func(ctx context.Context) error {
		lines, err := fetch.Map(ctx, []int{1, 2, 3}, byline)
		for _, line := range lines {
			fmt.Println(line)
		}
		return err
	}, fetch.Options{})
	fmt.Println(err)
	// Output:
	// select * from posts where id in [1 2 3]
	// select * from users where id in [11 10]
	// post 1 by user 11
	// post 2 by user 10
	// post 3 by user 11
	// <nil>
}

func ExampleTwo() {
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		u, p, err := fetch.Two(ctx,
			func(ctx context.Context) (User, error) { return users.Get(ctx, 12) },
			func(ctx context.Context) (Post, error) { return posts.Get(ctx, 7) })
		fmt.Println(u.Name, p.ID, fetch.Of(ctx).Stats().Rounds, err)
		return err
	}, fetch.Options{})
	// Unordered output:
	// select * from users where id in [12]
	// select * from posts where id in [7]
	// user 12 7 1 <nil>
}

// A source that only reads memory needs no batch and no goroutine: the first Get of a key calls its function.
func ExampleTogether() {
	settings := fetch.ByMap("settings", func(_ context.Context, names []string) (map[string]string, error) {
		fmt.Println("look up", names)
		return map[string]string{"colour": "blue"}, nil
	}, fetch.SourceOptions{Immediate: true, Inline: true})
	show := func(ctx context.Context) error {
		colour, err := settings.Get(ctx, "colour")
		fmt.Println(colour)
		return err
	}
	fmt.Println(fetch.Run(context.Background(), func(ctx context.Context) error { return fetch.Together(ctx, show, show) }, fetch.Options{}))
	// Output:
	// look up [colour]
	// blue
	// blue
	// <nil>
}

// An error of a key is remembered like a value: all callers get the same error.
func ExampleSource_Find() {
	stock := fetch.New("stock", func(_ context.Context, b *fetch.Batch[string, int]) error {
		for _, name := range b.Keys() {
			switch name {
			case "apples":
				b.Set(name, 3)
			case "pears":
				b.Fail(name, errors.New("rotten"))
			}
		}
		return nil
	}, fetch.SourceOptions{})
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		for _, name := range []string{"apples", "pears", "plums"} {
			fmt.Println(stock.Find(ctx, name))
		}
		return nil
	}, fetch.Options{})
	// Output:
	// 3 true <nil>
	// 0 false stock pears: rotten
	// 0 false <nil>
}

// A Memo is a source that is computed from other sources.
func ExampleMemo() {
	var size *fetch.Memo[string, int]
	children := fetchtest.New("children", func(dir string) ([]string, error) {
		return map[string][]string{"/": {"/a", "/b"}, "/a": {"/b", "/c"}}[dir], nil // two directories link to /b
	}, fetch.SourceOptions{})
	size = fetch.NewMemo("size", func(ctx context.Context, dir string) (int, error) {
		dirs, err := children.Get(ctx, dir)
		if err != nil {
			return 0, err
		}
		sizes, err := fetch.Map(ctx, dirs, size.Get)
		total := 1
		for _, n := range sizes {
			total += n
		}
		return total, err
	})
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		n, err := size.Get(ctx, "/")
		fmt.Println(n, children.Batches(), err)
		return err
	}, fetch.Options{})
	// Output: 5 [[/] [/a /b] [/c]] <nil>
}

// Effects are sent when only effects are pending, so that all earlier reads see the old state.
func ExampleEffect() {
	count := map[string]int{"a": 1}
	read := fetch.ByMap("read", func(context.Context, []string) (map[string]int, error) { return count, nil }, fetch.SourceOptions{})
	add := fetch.NewEffect("add", func(_ context.Context, b *fetch.Batch[string, int]) error {
		fmt.Println("add to", b.Keys())
		for _, name := range b.Keys() {
			count[name]++
			b.Set(name, count[name])
		}
		return nil
	}, fetch.SourceOptions{})
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		now, then, err := fetch.Two(ctx,
			func(ctx context.Context) ([]int, error) { return fetch.Map(ctx, []string{"a", "a"}, add.Do) },
			func(ctx context.Context) (int, error) { return read.Get(ctx, "a") })
		fmt.Println(now, then, err)
		return err
	}, fetch.Options{})
	// Output:
	// add to [a a]
	// [2 3] 1 <nil>
}

// With adds goroutines that were started elsewhere to a session.
func ExampleOpen() {
	source := fetchtest.New("squares", func(n int) (int, error) { return n * n, nil }, fetch.SourceOptions{})
	ctx, s := fetch.Open(context.Background(), fetch.Options{})
	defer s.Close()
	results := make(chan int)
	for n := range 3 {
		go func() {
			v, _ := source.Get(ctx, n)
			results <- v
		}()
	}
	fmt.Println(<-results+<-results+<-results, s.Stats().Keys)
	// Output: 5 3
}

// An executor collects thunks, and calls them when it has all thunks of a level.
func ExampleLater() {
	source := fetchtest.New("squares", func(n int) (int, error) { return n * n, nil }, fetch.SourceOptions{})
	ctx, s := fetch.Open(context.Background(), fetch.Options{})
	defer s.Close()
	var thunks []func() (int, error)
	for n := range 3 {
		thunks = append(thunks, fetch.Later(ctx, func(ctx context.Context) (int, error) { return source.Get(ctx, n) }))
	}
	for _, thunk := range thunks {
		fmt.Println(thunk())
	}
	fmt.Println(source.Batches())
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 4 <nil>
	// [[0 1 2]]
}

// A key without rows has an entry, too; otherwise it would count as not found. An error applies to all keys.
func queryComments(ctx context.Context, ids []int) (map[int][]string, error) {
	comments := make(map[int][]string, len(ids))
	for _, id := range ids {
		comments[id] = nil
	}
	rows := []struct {
		post int
		text string
	}{{1, "first"}, {1, "second"}, {3, "third"}} // the rows of a statement with "where post in"
	for _, row := range rows {
		comments[row.post] = append(comments[row.post], row.text)
	}
	return comments, nil // with a database: return comments, rows.Err()
}

var comments = fetch.ByMap("comments", queryComments, fetch.SourceOptions{})

func ExampleByMap_oneToMany() {
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		all, err := comments.All(ctx, []int{1, 2, 3})
		fmt.Printf("%q\n", all)
		return err
	}, fetch.Options{})
	// Output: [["first" "second"] [] ["third"]]
}

// Each request of a server is a Run with the request's context, so batches are cancelled with the request.
func serveByline(w http.ResponseWriter, r *http.Request) {
	var line string
	err := fetch.Run(r.Context(), func(ctx context.Context) (err error) {
		line, err = byline(ctx, 1)
		return err
	}, fetch.Options{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, line)
}

func ExampleRun_handler() {
	w := httptest.NewRecorder()
	serveByline(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Body)
	// Output:
	// select * from posts where id in [1]
	// select * from users where id in [11]
	// post 1 by user 11
}

// withSession opens a session for each request, for a handler that starts goroutines, such as a GraphQL executor.
func withSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, s := fetch.Open(r.Context(), fetch.Options{})
		defer s.Close()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func ExampleOpen_handler() {
	w := httptest.NewRecorder()
	withSession(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line, err := byline(r.Context(), 1)
		fmt.Fprintln(w, line, err)
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Body)
	// Output:
	// select * from posts where id in [1]
	// select * from users where id in [11]
	// post 1 by user 11 <nil>
}

type rename struct {
	ID   int
	Name string
}

var names = map[int]string{7: "Ann"}

var people = fetch.ByMap("people", func(_ context.Context, ids []int) (map[int]string, error) { return names, nil }, fetch.SourceOptions{})

var setName = fetch.NewEffect("setName", func(_ context.Context, b *fetch.Batch[rename, bool]) error {
	for _, r := range b.Keys() {
		names[r.ID] = r.Name
		b.Set(r, true)
	}
	return nil
}, fetch.SourceOptions{})

// renamed writes a name, and then reads what it has written.
func renamed(ctx context.Context, id int, name string) (string, error) {
	if _, err := setName.Do(ctx, rename{id, name}); err != nil {
		return "", err
	}
	people.Forget(ctx, id) // the session may have read the old name
	return people.Get(ctx, id)
}

func ExampleSource_Forget() {
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		old, _ := people.Get(ctx, 7)
		name, err := renamed(ctx, 7, "Anna")
		fmt.Println(old, name, err)
		return err
	}, fetch.Options{})
	// Output: Ann Anna <nil>
}
