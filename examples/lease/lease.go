// Lease is a server that lends a lease to one client at a time. It is a program as it is: main listens on a port and starts a ticker. The test
// runs main, and clients, on the nodes of a simulation.
//
//	go test -v ./examples/lease
package main

import (
	"log"
	"net/http"
	"sync"
	"time"
)

// A client that asks for the lease gets it for this time, counted from the moment at which it asked.
const length = 10 * time.Second

func main() {
	var mu sync.Mutex
	holder, until := "a client of an earlier server", time.Now().Add(length)
	go func() {
		for now := range time.Tick(time.Second) {
			mu.Lock()
			if now.After(until) {
				holder = ""
			}
			mu.Unlock()
		}
	}()
	http.HandleFunc("POST /lease", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		by := r.FormValue("by")
		if holder != "" && holder != by {
			http.Error(w, "lent to "+holder, http.StatusConflict)
			return
		}
		holder, until = by, time.Now().Add(length)
	})
	log.Fatal(http.ListenAndServe(":80", nil))
}
