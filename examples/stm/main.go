// Stm runs three classic examples of memory transactions: the dining philosophers, the Santa Claus problem, and a bounded queue between two
// schedulers.
//
//	go run ./examples/stm
package main

import "github.com/braidgo/braid/adapters/workstealing"

func main() {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	philosophers(pool)
	santa(pool)
	orders(pool)
}
