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

// These rows compare the example server, a loop and a pool, with a loop that computes inline and with net/http: "ahead of both". The example
// drives all three itself, one after the other, from a process of its own, two seconds each, and the rows read its output. 16 connections
// ask for fib(1), whose p90 is a row, and 2 for fib(35). The time of a request, of either kind, is another row. A run of the example is a
// round.
//
// The time of a costly request is a row without a must. All connections ask again as soon as they are answered, so the processors are
// divided between the two kinds. A server that answers ten times the number of cheap requests has less left for the costly ones.
var fibserverRows = func() (all []row) {
	var runs fibserver
	for i, peer := range []string{"inline", "net-http"} {
		against := []string{"a loop that computes inline", "net/http, goroutines"}[i]
		all = append(all,
			runs.row("fibserver/p90/"+peer, against, i+1, func(f fibFigures) float64 { return f.cheapP90 }),
			runs.row("fibserver/throughput/"+peer, against, i+1, func(f fibFigures) float64 { return 1e9 / (f.cheap + f.costly) }),
			runs.row("fibserver/costly/"+peer, against, i+1, func(f fibFigures) float64 { return 1e9 / f.costly }))
		all[len(all)-1].must, all[len(all)-1].aim = 0, 0
	}
	return all
}()

const fibRuns = 3

// fibserver has the output of the runs of the example, for all rows.
type fibserver struct{ runs [][]fibFigures }

// fibFigures are of one server: in nanoseconds, and requests a second.
type fibFigures struct{ cheapP90, cheap, costly float64 }

func (s *fibserver) row(id, against string, peer int, figure func(fibFigures) float64) row {
	var rounds [2]int // that either side has had
	return row{id: id, against: against, unit: "ns", must: 1, aim: 1, rounds: fibRuns, cold: true, open: func(m mode) (*sides, error) {
		one := func(i, server int) side {
			return func(time.Duration) (float64, error) {
				for len(s.runs) <= rounds[i] {
					if err := s.run(m); err != nil {
						return 0, err
					}
				}
				rounds[i]++
				return figure(s.runs[rounds[i]-1][server]), nil
			}
		}
		return &sides{ours: one(0, 0), peer: one(1, peer)}, nil
	}}
}

// run has some more rounds.
func (s *fibserver) run(m mode) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server := filepath.Join(dir, "fibserver")
	build := exec.Command("go", "build", "-C", filepath.FromSlash("../examples/fibserver"), "-o", server, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	for range m.of(fibRuns, 1) {
		out, err := exec.Command(server, "-load", fmt.Sprint(time.Duration(m.of(2000, 50))*time.Millisecond)).Output()
		if err != nil {
			return err
		}
		figures, err := parseFibserver(out)
		if err != nil {
			return fmt.Errorf("%w in what the example printed:\n%s", err, out)
		}
		s.runs = append(s.runs, figures)
	}
	return nil
}

var (
	fibBlock = regexp.MustCompile(`(?m)^(composed|inline|net/http): .*\n((?:[ \t]+/fib/.*\n){2})`)
	fibLine  = regexp.MustCompile(`(?m)^\s+/fib/(\d+)\s+(\d+) req/s\s.*\bp90\s+(\S+)`)
)

// parseFibserver finds the three servers in their order, or fails. They come a second time, at an equal load; the rows are of
// the first.
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
