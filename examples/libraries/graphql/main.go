// Graphql answers a GraphQL query with two libraries. The executor of graphql-go/graphql collects thunks, so that batches are exact. But
// graph-gophers/graphql-go calls resolvers on goroutines, so package fetch must estimate when a batch is complete. A third server has naive
// resolvers without batches. See README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"

	"github.com/braidgo/braid/fetch"
)

// query is sent to all servers.
const query = `{ users { name posts { title author { name } } } }`

// An answerer executes a query and returns the response.
type answerer func(ctx context.Context, query string) any

// handler answers each request in a new fetch session. Response headers report the rounds, the batches and the statements.
func handler(answer answerer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, s := fetch.Open(fetch.Label(r.Context(), r.URL.Path), fetch.Options{Trace: true})
		before := statements.Load()
		text, err := json.Marshal(answer(ctx, r.FormValue("query")))
		s.Close()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		st := s.Stats()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Fetch-Rounds", fmt.Sprintf("%d rounds, %d batches, %d keys for %d gets", st.Rounds, st.Batches, st.Keys, st.Gets))
		for _, b := range s.Trace().Batches {
			w.Header().Add("Server-Timing", fmt.Sprintf("%s-%d;dur=%.2f;desc=\"%d keys\"", b.Source, b.Round, (b.End-b.Start).Seconds()*1000, b.Keys))
		}
		w.Header().Set("Statements", fmt.Sprint(statements.Load()-before))
		_, _ = w.Write(text)
	}
}

func mux() (*http.ServeMux, error) {
	exact, err := schema(later(itself, names.Get), later(itself, posts.Get), later(authorOf, authors.Get))
	if err != nil {
		return nil, err
	}
	one, err := schema(naive(itself, userNames), naive(itself, userPosts), naive(authorOf, authorNames))
	if err != nil {
		return nil, err
	}
	m := http.NewServeMux()
	m.Handle("/later", handler(execute(exact)))
	m.Handle("/settled", handler(gophers()))
	m.Handle("/naive", handler(execute(one)))
	return m, nil
}

func main() {
	addr := flag.String("addr", "", "serve on this `address`, instead of one query to each server")
	flag.Parse()
	m, err := mux()
	if err == nil && *addr != "" {
		err = http.ListenAndServe(*addr, m)
	} else if err == nil {
		compare(m, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "graphql:", err)
		os.Exit(1)
	}
}

// compare sends the query once to each server, and prints the number of statements.
func compare(m http.Handler, out io.Writer) {
	fmt.Fprintln(out, query)
	for _, path := range []string{"/later", "/settled", "/naive"} {
		r := ask(m, path)
		fmt.Fprintf(out, "%-8s  %4s statements  %s\n", path, r.Header().Get("Statements"), r.Header().Get("Fetch-Rounds"))
	}
}

func ask(m http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", path+"?query="+url.QueryEscape(query), nil))
	return w
}
