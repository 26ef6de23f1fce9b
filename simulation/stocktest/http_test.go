package stocktest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
)

// posts runs 20 clients on one node with pools, timeouts and retries. Each sends 10 requests.
func posts(_ context.Context, w *world) error {
	const clients, requests = 20, 10
	w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.01})
	var mu sync.Mutex
	seen := map[string]int{}
	srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen[string(body)]++
		n := len(seen)
		mu.Unlock()
		time.Sleep(time.Duration(len(body)) * time.Millisecond)
		fmt.Fprintf(rw, "%s is %d", body, n)
	}), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 20 * time.Second}
	w.Node("server").Start(func(ctx context.Context, h *simulation.Host) {
		ln, err := h.Listen("tcp", "0.0.0.0:80")
		if err == nil {
			err = srv.Serve(ln)
		}
		w.Log("%v", err)
	})
	errs := make(chan error, clients)
	for i := range clients {
		w.Node("clients").Start(func(ctx context.Context, h *simulation.Host) {
			tr := &http.Transport{DialContext: h.Dial, MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Second}
			defer tr.CloseIdleConnections()
			client := &http.Client{Transport: tr, Timeout: 150 * time.Millisecond}
			for k := range requests {
				for body := fmt.Sprint(i, "-", k); ; time.Sleep(10 * time.Millisecond) {
					resp, err := client.Post("http://server/", "text/plain", strings.NewReader(body))
					if err != nil {
						continue
					}
					got, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err == nil && !strings.HasPrefix(string(got), body+" is ") {
						errs <- fmt.Errorf("%s: %s", body, got)
						return
					}
					if err == nil {
						break
					}
				}
			}
			errs <- nil
		})
	}
	err := all(clients, errs)
	mu.Lock()
	defer mu.Unlock()
	_ = srv.Close()
	if err == nil && len(seen) != clients*requests {
		err = fmt.Errorf("%d seen", len(seen))
	}
	return err
}

func TestHTTP(t *testing.T) { run(t, 20, posts) }
