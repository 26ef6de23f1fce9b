package main

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/mutex"
)

func main() {
	ctx := context.Background()
	s := New()
	var mu mutex.Mutex
	words := chanx.New[string](0)

	say := func(who string) func() {
		return func() {
			for _, word := range []string{"hello", "goodbye"} {
				if err := mu.LockContext(ctx); err != nil { // suspends only the task
					panic(err)
				}
				err := words.Send(ctx, word+" from "+who)
				mu.Unlock()
				if err != nil {
					panic(err)
				}
			}
		}
	}
	for _, f := range []func(){say("the first task"), say("the second task")} {
		if err := s.Go(f); err != nil {
			panic(err)
		}
	}
	s.Close()
	go s.Run()
	for range 4 { // the main goroutine receives the words
		word, err := words.Recv(ctx)
		fmt.Println(word, err)
	}
}
