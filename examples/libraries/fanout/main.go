// Fanout renders a page from the answers of four HTTP services, in a task of an event loop. The page is rendered even if the stock service
// or the rating service is down. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/promise"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fanout", flag.ContinueOnError)
	down := flags.String("down", "rating", "the `service` that is down: listing, product, stock, rating or none")
	slow := flags.Bool("slow", false, "stock takes 200 ms; show the page with Eager, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var calls atomic.Int64
	var takes time.Duration
	if *slow {
		takes = 200 * time.Millisecond
	}
	server := serve(*down, takes, &calls)
	defer server.Close()
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return err
	}
	defer loop.Close()
	s := newServices(server.URL, &calls)
	ways := []bool{false}
	if *slow {
		ways = append(ways, true)
	}
	for _, eager := range ways {
		o := fetch.Options{Eager: eager, Trace: *slow, OnBatch: logger(out)}
		page := promise.Go(ctx, loop, func(ctx context.Context) (string, error) { return s.render(fetch.Label(ctx, names[eager]), o, out) })
		text, err := page.Await(ctx)
		if err != nil {
			return err
		}
		if !*slow {
			fmt.Fprintf(out, "\n%s\n%d calls\n", text, calls.Load())
		}
	}
	return nil
}

var names = map[bool]string{false: "Rounds", true: "Eager"}

// logger returns an OnBatch function that writes a line for each batch. A tracer would start a span instead.
func logger(out io.Writer) func(context.Context, fetch.BatchInfo) (context.Context, func(error)) {
	var mu sync.Mutex
	return func(ctx context.Context, b fetch.BatchInfo) (context.Context, func(error)) {
		return ctx, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "round %d: %s, %d keys, %v\n", b.Round, b.Source, b.Keys, err)
		}
	}
}

// render calls page in a new Run, in the calling task, and prints the trace of the Run if there is one.
func (s *services) render(ctx context.Context, o fetch.Options, out io.Writer) (page string, err error) {
	err = fetch.Run(ctx, func(ctx context.Context) error {
		page, err = s.page(ctx)
		if t := fetch.Of(ctx).Trace(); t != nil {
			fmt.Fprint(out, t)
		}
		return err
	}, o)
	return page, err
}

// page gets each value separately, but the gets of many lines share a batch.
func (s *services) page(ctx context.Context) (string, error) {
	ids, err := s.listing.Get(ctx, "front")
	if err != nil {
		return "", err
	}
	lines, err := fetch.Map(ctx, ids, s.line)
	return strings.Join(lines, "\n"), err
}

// line returns the line for a product. It shows a default if the stock service or the rating service is down.
func (s *services) line(ctx context.Context, id int) (string, error) {
	product, stock, stars, err := fetch.Three(ctx,
		func(ctx context.Context) (Product, error) { return s.product.Get(ctx, id) },
		func(ctx context.Context) (string, error) {
			n, err := s.stock.Get(ctx, id)
			return orElse(fmt.Sprintf("%d in stock", n), "ask for it", err)
		},
		s.stars(id))
	return fmt.Sprintf("%-12s %-12s %s", product.Name, stock, stars), err
}

// stars returns a function that gets the rating of a product. If the rating is above 4, the function then gets a second product, so that
// one request depends on the answer to another.
func (s *services) stars(id int) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		n, err := s.rating.Get(ctx, id)
		if err == nil && n > 4 {
			best, err := s.product.Get(ctx, 100+id)
			return orElse(fmt.Sprintf("%.1f stars, like %s", n, best.Name), "", err)
		}
		return orElse(fmt.Sprintf("%.1f stars", n), "not rated", err)
	}
}

// orElse returns a default and no error if the service is down. It returns any other error, such as a cancellation, unchanged.
func orElse(v, instead string, err error) (string, error) {
	if errors.Is(err, errDown) {
		return instead, nil
	}
	return v, err
}
