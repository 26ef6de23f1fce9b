package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/fetch"
)

func output(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPage(t *testing.T) {
	for _, c := range []struct {
		args  []string
		wants []string
	}{
		{nil, []string{"product 4    0 in stock   not rated\n", "round 2: product, 12 keys, <nil>\n", "\n15 calls\n"}},
		{[]string{"-down", "stock"}, []string{"product 4    ask for it   4.5 stars, like product 104\n", "round 3: product, 2 keys, <nil>\n", "\n16 calls\n"}},
		{[]string{"-down", "none"}, []string{"product 1    1 in stock   1.5 stars\n", "\n16 calls\n"}},
	} {
		out := output(t, c.args...)
		for _, want := range c.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in:\n%s", c.args, want, out)
			}
		}
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-down", "product"}, &out); err == nil || !strings.Contains(err.Error(), "product 1: service unavailable") {
		t.Errorf("without products: %v", err)
	}
}

func TestSlow(t *testing.T) {
	out := output(t, "-slow", "-down", "none")
	for _, want := range []string{
		`(?m)^Rounds: 3 rounds, 5 batches, 39 keys for 39 gets, \d+`,
		`(?m)^Eager: 3 rounds, 5 batches, 39 keys for 39 gets, \d+`,
		`stock answers in \d+\.\d ms, 24 tasks waited only for it in round 2: see Eager`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Count(out, "see Eager") != 1 {
		t.Errorf("Eager is recommended to Eager:\n%s", out)
	}
}

// If a response breaks off, all its products get an error.
func TestHalfAnAnswer(t *testing.T) {
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"ID": 1, "Name": "one"}, {"ID": 2`)
	}))
	defer half.Close()
	s := newServices(half.URL, new(atomic.Int64))
	_ = fetch.Run(t.Context(), func(ctx context.Context) error {
		for _, k := range []int{1, 2} {
			if p, err := s.product.Get(ctx, k); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("product %d: %v, %v", k, p, err)
			}
		}
		return nil
	}, fetch.Options{})
}
