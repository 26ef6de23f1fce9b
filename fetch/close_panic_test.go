package fetch_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/fetch"
)

func TestPanicAtClose(t *testing.T) {
	loading := make(chan struct{})
	src := fetch.ByKey("s", 1, func(ctx context.Context, k int) (int, error) {
		close(loading)
		<-ctx.Done()
		panic("mine")
	}, fetch.SourceOptions{})
	ctx, s := fetch.Open(context.Background(), fetch.Options{})
	got := make(chan any, 1)
	go func() {
		defer func() { got <- recover() }()
		_, err := src.Get(ctx, 1)
		t.Log("err", err)
	}()
	<-loading
	s.Close()
	if v := <-got; v != nil && v != "mine" {
		t.Errorf("%T %v", v, v)
	}
}
