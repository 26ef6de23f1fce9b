package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/fetch"
)

// A Product is one item of the page's list.
type Product struct {
	ID   int
	Name string
}

// services holds a source for each of the four services. The product service and the stock service accept several ids per call, but the
// rating service accepts only one.
type services struct {
	listing *fetch.Source[string, []int]
	product *fetch.Source[int, Product]
	stock   *fetch.Source[int, int]
	rating  *fetch.Source[int, float64]
	calls   *atomic.Int64
}

func newServices(base string, calls *atomic.Int64) *services {
	return &services{
		calls: calls,
		listing: fetch.ByKey("listing", 1, func(ctx context.Context, shelf string) (ids []int, err error) {
			err = call(ctx, base+"/listing?shelf="+url.QueryEscape(shelf), &ids)
			return ids, err
		}),
		product: fetch.ByMap("product", func(ctx context.Context, ids []int) (map[int]Product, error) {
			var list []Product
			if err := call(ctx, base+"/product?ids="+join(ids), &list); err != nil {
				return nil, err
			}
			byID := map[int]Product{}
			for _, p := range list {
				byID[p.ID] = p
			}
			return byID, nil
		}, fetch.SourceOptions{MaxBatch: 50}),
		stock: fetch.BySlice("stock", func(ctx context.Context, ids []int) (numbers []int, err error) {
			err = call(ctx, base+"/stock?ids="+join(ids), &numbers)
			return numbers, err
		}),
		// The rating service accepts one id per call. At most eight calls run in parallel, so that they do not overload the service.
		rating: fetch.ByKey("rating", 8, func(ctx context.Context, id int) (stars float64, err error) {
			err = call(ctx, fmt.Sprint(base, "/rating?id=", id), &stars)
			return stars, err
		}),
	}
}

func join(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}

var errDown = errors.New("service unavailable")

// call fetches a URL and decodes its JSON. It may block in package net/http, because each batch runs on its own goroutine.
func call(ctx context.Context, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errDown, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// serve starts the four services on one port. The argument named down names a service that answers with status 503, and slow is the time
// for which the stock service sleeps.
func serve(down string, slow time.Duration, calls *atomic.Int64) *httptest.Server {
	m := http.NewServeMux()
	handle := func(name string, f func(r *http.Request) any) {
		m.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			if name == down {
				http.Error(w, "down", http.StatusServiceUnavailable)
				return
			}
			_ = json.NewEncoder(w).Encode(f(r))
		})
	}
	handle("listing", func(*http.Request) any { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} })
	handle("product", func(r *http.Request) any {
		var list []Product
		for _, id := range ids(r) {
			list = append(list, Product{id, fmt.Sprint("product ", id)})
		}
		return list
	})
	handle("stock", func(r *http.Request) any {
		time.Sleep(slow)
		var numbers []int
		for _, id := range ids(r) {
			numbers = append(numbers, id%4)
		}
		return numbers
	})
	handle("rating", func(r *http.Request) any {
		id, _ := strconv.Atoi(r.FormValue("id"))
		return float64(id%5) + 0.5
	})
	return httptest.NewServer(m)
}

func ids(r *http.Request) (ids []int) {
	for word := range strings.SplitSeq(r.FormValue("ids"), ",") {
		id, _ := strconv.Atoi(word)
		ids = append(ids, id)
	}
	return ids
}
