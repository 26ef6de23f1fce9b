package stage_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/view"
)

func query(_ context.Context, key string) (string, error) { return "row of " + key, nil }

func render(_ context.Context, row string) (string, error) { return "<p>" + row + "</p>", nil }

// A stage protects a database: 40 queries run at a time, 160 wait, and further ones are refused at once.
func ExampleNew() {
	db := stage.New("db", query, stage.Options{
		Width: 40, Queue: 160,
		Reject: true,                 // callers do not wait for room
		Delay:  5 * time.Millisecond, // queries do not wait in the queue for much longer than this
	})
	defer db.Shutdown(context.Background())

	handler := func(w http.ResponseWriter, r *http.Request) {
		row, err := db.Do(r.Context(), r.URL.Query().Get("key"))
		switch {
		case errors.Is(err, stage.ErrOverload):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			fmt.Fprint(w, row)
		}
	}

	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest("GET", "/?key=7", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 row of 7
}

// Two successive stages share a pool of two workers.
func ExamplePipe() {
	cpu := stage.NewPool("cpu", 2, nil)
	fetch := stage.New("fetch", query, stage.Options{Pool: cpu})
	page := stage.New("page", render, stage.Options{Pool: cpu})
	site := stage.Pipe(fetch, page)

	html, err := site.Do(context.Background(), "7")
	fmt.Println(html, err)

	err = stage.Shutdown(context.Background(), fetch, page) // in the order of the pipe, so that nothing is lost
	fmt.Println(err)
	// Output:
	// <p>row of 7</p> <nil>
	// <nil>
}

// A sequence passes through a stage, four values at a time, with the results in order.
func ExampleEach() {
	db := stage.New("db", query, stage.Options{Width: 4})
	keys := slices.Values([]string{"a", "b", "c"})

	for row, err := range stage.Each(context.Background(), db, scope.Lift(keys), stage.EachOptions{}) {
		if err != nil {
			break // stops the rest, and waits for running tasks
		}
		fmt.Println(row)
	}
	_ = db.Shutdown(context.Background())
	// Output:
	// row of a
	// row of b
	// row of c
}

// A handler starts other tasks with its context, and waits for none of them. Its caller gets the result when all are done.
func ExampleFlow() {
	var visit *stage.Stage[string, int]
	links := map[string][]string{"/": {"/a", "/b"}, "/a": {"/c"}}
	visit = stage.New("visit", func(ctx context.Context, page string) (int, error) {
		for _, link := range links[page] {
			if err := visit.Submit(ctx, link); err != nil {
				return 0, err
			}
		}
		return len(page), nil
	}, stage.Options{Width: 2, Queue: 100})

	_, err := visit.Do(context.Background(), "/") // visits the whole site
	fmt.Println(visit.Stats().Completed, err)
	_ = visit.Shutdown(context.Background())
	// Output: 4 <nil>
}

// A failed task is tried again, and then becomes a dead letter.
func ExampleStage_OnFail() {
	s := stage.New("mail", func(context.Context, string) (struct{}, error) {
		return struct{}{}, errors.New("no route")
	}, stage.Options{
		Retry: func(_ error, try int) (after time.Duration, again bool) {
			return time.Duration(try) * time.Millisecond, try < 3
		},
	}).OnFail(func(_ context.Context, to string, err error) {
		fmt.Println(to, "gets no mail:", err)
	})
	_ = s.Submit(context.Background(), "ann")
	_ = s.Shutdown(context.Background()) // waits for the retries
	fmt.Println(s.Stats().Retried, "retries")
	// Output:
	// ann gets no mail: no route
	// 2 retries
}

// The stage finds its own width, and a page shows it.
func ExampleClimb() {
	db := stage.New("db", query, stage.Options{
		Width: 10, Queue: 160,
		Limit: stage.Climb(2, 400),
	})
	http.Handle("/stages", view.Handler(db))

	_ = db.Submit(context.Background(), "7")
	_ = db.Shutdown(context.Background())
	fmt.Println(db.Stats().Width)
	// Output: 10
}

// An operator widens a stage, and the pool that it shares with other stages, while tasks run.
func ExampleStage_SetWidth() {
	pool := stage.NewPool("databases", 4, nil)
	db := stage.New("db", query, stage.Options{Width: 2, Pool: pool})
	db.SetWidth(8)   // the number of tasks in progress
	pool.SetWidth(6) // the number of running handlers
	_ = db.Shutdown(context.Background())
	fmt.Println(db.Stats().Width, pool.Stats().Width)
	// Output: 8 6
}

// These are the figures of the last second, as on the status page.
func ExampleStats_Sub() {
	before := []stage.Stats{{Name: "db", Width: 2, Arrived: 100, Completed: 100}}
	now := []stage.Stats{{Name: "db", Width: 2, Arrived: 150, Completed: 140, Waiting: 8, Busy: 2}}
	rows := view.Rows(before, now, time.Second)
	fmt.Printf("%s: %v arrive and %v are done in a second, %d wait\n", rows[0].Name, rows[0].A, rows[0].S, rows[0].Waiting)
	fmt.Println(strings.Fields(view.Text(rows))[:4])
	// Output:
	// db: 50 arrive and 40 are done in a second, 8 wait
	// [stage A/s S/s rejected/s]
}
