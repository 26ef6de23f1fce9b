package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// The rows of fibserver compare two servers of examples/fibserver: the composed server, which is a loop with a pool, must be faster than
// net/http. The program measures its servers itself, one after another, for two seconds each, with a client in a separate process. On 16
// connections the client requests fib(1), and on 2 connections fib(35). Each run of the program is one round of all these rows.
//
// The row for costly requests has no must. Each connection sends a new request when it receives an answer, so the two kinds of requests
// compete for the processors. A server that answers ten times as many cheap requests has less time left for costly requests.

// fibRuns holds the figures of the composed server and of net/http, from all runs.
var fibRuns [][2]fibFigures

// fibFigures holds the figures of one server. The field cheapP90 is in nanoseconds, and the fields cheap and costly are in requests per
// second.
type fibFigures struct{ cheapP90, cheap, costly float64 }

func fibP90(f fibFigures) float64 { return f.cheapP90 }

func fibBoth(f fibFigures) float64 { return 1e9 / (f.cheap + f.costly) }

func fibCostly(f fibFigures) float64 { return 1e9 / f.costly }

// fibRow compares a figure of the composed server with the same figure of net/http. In each round, a side uses the next run that it has not
// used yet.
func fibRow(figure func(fibFigures) float64) func(b *bench) (ours, peer side) {
	var had [2]int
	return func(b *bench) (ours, peer side) {
		of := func(server int) side {
			return func() float64 {
				if had[server]++; len(fibRuns) < had[server] {
					fibRuns = append(fibRuns, runFibserver(b))
				}
				return figure(fibRuns[had[server]-1][server])
			}
		}
		return of(0), of(1)
	}
}

var fibserver = sync.OnceValue(func() string { return built("fibserver") })

var fibLoads = regexp.MustCompile(`(?m)^(composed|net/http): .*\n\s+/fib/1 +(\d+) req/s .*\bp90 +(\S+) .*\n\s+/fib/35 +(\d+) req/s `)

// runFibserver runs the program. Its output contains a third server, and a second measurement under an equal load, which are ignored.
func runFibserver(b *bench) (all [2]fibFigures) {
	out := must(exec.Command(fibserver(), "-load", fmt.Sprint(time.Duration(b.of(2000, 50))*time.Millisecond)).Output())
	servers := fibLoads.FindAllStringSubmatch(string(out), 2)
	if len(servers) != 2 || servers[0][1] != "composed" || servers[1][1] != "net/http" {
		ok(fmt.Errorf("no two servers in what the example printed:\n%s", out))
	}
	for i, s := range servers {
		cheap, p90, costly := must(strconv.ParseFloat(s[2], 64)), must(time.ParseDuration(s[3])), must(strconv.ParseFloat(s[4], 64))
		all[i] = fibFigures{float64(p90), max(cheap, 1), max(costly, 1)}
	}
	return all
}
