package main

import (
	"fmt"

	"github.com/braidgo/braid/mutex"
)

func main() {
	var mu mutex.Mutex
	mu.Lock()
	defer mu.Unlock()
	fmt.Println("locked")
}
