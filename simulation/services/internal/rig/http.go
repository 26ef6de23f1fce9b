package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Again repeats try for five minutes, until it succeeds. Each try has two seconds.
func Again(what string, try func(ctx context.Context) error) (err error) {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err = try(ctx)
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Post sends the ids name0, name1 and so on, n of them. Each goes to one node after the other until it is acknowledged.
func Post(nodes []string, name string, n int) error {
	for i := range n {
		if _, err := askNodes(nodes, "POST", fmt.Sprint(name, i)); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// All checks that a node shows all ids that Post has sent for names, each on a line.
func All(nodes, names []string, n int) error {
	ids, err := askNodes(nodes, "GET", "")
	for _, name := range names {
		for i := range n {
			if err == nil && !strings.Contains("\n"+ids, fmt.Sprint("\n", name, i, "\n")) {
				err = fmt.Errorf("%s%d was acknowledged, and is not in %q", name, i, ids)
			}
		}
	}
	return err
}

var client = &http.Client{Timeout: time.Second}

func askNodes(nodes []string, method, path string) (text string, err error) {
	for end, k := time.Now().Add(2*time.Minute), 0; time.Now().Before(end); k++ {
		r, _ := http.NewRequest(method, "http://"+nodes[k%len(nodes)]+"/"+path, nil)
		var resp *http.Response
		if resp, err = client.Do(r); err == nil {
			var b []byte
			b, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil && resp.StatusCode == http.StatusOK {
				return string(b), nil
			}
			err = fmt.Errorf("%s: %q, %w", resp.Status, b, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", fmt.Errorf("no progress: %s %s: %w", method, path, err)
}
