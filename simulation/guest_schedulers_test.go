package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// Other schedulers run in guests, with the network of their node: fetch with asynchronous sources, fifo, random, and the pool.
func TestGuestSchedulers(t *testing.T) {
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond})
		w.Node("server").Start(func(_ context.Context, h *simulation.Host) {
			ln, err := h.Listen("tcp", ":1")
			for err == nil {
				c, failed := ln.Accept()
				if err = failed; err == nil {
					go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
				}
			}
		})
		results := make(chan error)
		for i, run := range []func(ctx context.Context, main func(ctx context.Context) error) error{
			func(ctx context.Context, main func(ctx context.Context) error) error {
				return fetch.Run(ctx, main, fetch.Options{})
			},
			fifo.Run,
			random.New(random.Options{Seed: w.Seed()}).Run,
			func(ctx context.Context, main func(ctx context.Context) error) error {
				p := workstealing.New(workstealing.Options{Workers: 1})
				defer p.Close()
				return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error { s.Go(p, main); return nil })
			},
		} {
			w.Node(fmt.Sprint("client", i)).Start(func(ctx context.Context, h *simulation.Host) {
				echo := fetch.BySlice("echo", func(ctx context.Context, keys []byte) ([]byte, error) {
					return suspend.BlockingValue(ctx, func() ([]byte, error) {
						c, err := h.Dial(ctx, "tcp", "server:1")
						if err != nil {
							return nil, err
						}
						defer c.Close()
						_, _ = c.Write(keys)
						_, err = io.ReadFull(c, keys)
						return keys, err
					})
				}, fetch.SourceOptions{})
				results <- run(ctx, func(ctx context.Context) error {
					return fetch.Run(ctx, func(ctx context.Context) error {
						return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
							for range 2 {
								s.Go(suspend.Here(), func(ctx context.Context) error {
									all, err := echo.All(ctx, []byte("abc"))
									w.Log("%d: %s", i, all)
									if err == nil && !slices.Equal(all, []byte("abc")) {
										err = errors.New(string(all))
									}
									return err
								})
							}
							return nil
						})
					}, fetch.Options{})
				})
			})
		}
		return errors.Join(<-results, <-results, <-results, <-results)
	}, simulation.TestOptions{Seeds: 5, Twice: true, InProcess: true, Options: simulation.Options{Guests: true}})
}
