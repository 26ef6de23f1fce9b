package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// fibserver holds the figures from all runs of the program examples/fibserver. Its composed server, a loop with a pool, must be faster than
// a loop that computes inline and than net/http. The program measures all three servers itself, one after another, for two seconds each,
// with a client in a separate process. On 16 connections the client requests fib(1), and on 2 connections fib(35). Each run of the program
// is one round of all these rows.
//
// The rows for costly requests have no must. Each connection sends a new request when it receives an answer, so the two kinds of requests
// compete for the processors. A server that answers ten times as many cheap requests has less time left for costly requests.
var fibserver struct{ runs [][]fibFigures }

const fibRuns = 3

// fibFigures holds the figures of one server. The field cheapP90 is in nanoseconds, and the fields cheap and costly are in requests per
// second.
type fibFigures struct{ cheapP90, cheap, costly float64 }

func fibP90(f fibFigures) float64 { return f.cheapP90 }

func fibBoth(f fibFigures) float64 { return 1e9 / (f.cheap + f.costly) }

func fibCostly(f fibFigures) float64 { return 1e9 / f.costly }

// fibRow compares a figure of the composed server with the same figure of another server. In each round, a side uses the next run that it
// has not used yet.
func fibRow(other int, figure func(fibFigures) float64) func(b *bench) (ours, peer side) {
	var had [2]int
	return func(b *bench) (ours, peer side) {
		of := func(i, server int) side {
			return func(time.Duration) float64 {
				for len(fibserver.runs) <= had[i] {
					runFibserver(b.mode)
				}
				had[i]++
				return figure(fibserver.runs[had[i]-1][server])
			}
		}
		return of(0, 0), of(1, other)
	}
}

// runFibserver builds the program, runs it, and appends the figures of the new runs.
func runFibserver(m mode) {
	dir := must(os.MkdirTemp("", "bench"))
	defer os.RemoveAll(dir)
	server := filepath.Join(dir, "fibserver")
	build := exec.Command("go", "build", "-C", filepath.FromSlash("../examples/fibserver"), "-o", server, ".")
	build.Stderr = os.Stderr
	ok(build.Run())
	for range m.of(fibRuns, 1) {
		out := must(exec.Command(server, "-load", fmt.Sprint(time.Duration(m.of(2000, 50))*time.Millisecond)).Output())
		figures, err := parseFibserver(out)
		if err != nil {
			ok(fmt.Errorf("%w in what the example printed:\n%s", err, out))
		}
		fibserver.runs = append(fibserver.runs, figures)
	}
}

var (
	fibBlock = regexp.MustCompile(`(?m)^(composed|inline|net/http): .*\n((?:[ \t]+/fib/.*\n){2})`)
	fibLine  = regexp.MustCompile(`(?m)^\s+/fib/(\d+)\s+(\d+) req/s\s.*\bp90\s+(\S+)`)
)

// parseFibserver returns the figures of the three servers in their order. The output contains a second measurement under an equal load,
// which is ignored.
func parseFibserver(out []byte) ([]fibFigures, error) {
	var all []fibFigures
	for i, block := range fibBlock.FindAllSubmatch(out, 3) {
		if string(block[1]) != []string{"composed", "inline", "net/http"}[i] {
			return nil, errors.New("servers out of order")
		}
		var f fibFigures
		lines := fibLine.FindAllSubmatch(block[2], -1)
		if len(lines) != 2 || string(lines[0][1]) != "1" || string(lines[1][1]) != "35" {
			return nil, errors.New("no two loads")
		}
		cheap, err1 := strconv.ParseFloat(string(lines[0][2]), 64)
		costly, err2 := strconv.ParseFloat(string(lines[1][2]), 64)
		p90, err3 := time.ParseDuration(string(lines[0][3]))
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		f = fibFigures{float64(p90), max(cheap, 1), max(costly, 1)}
		all = append(all, f)
	}
	if len(all) != 3 {
		return nil, errors.New("not three servers")
	}
	return all, nil
}
