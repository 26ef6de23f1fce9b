// Bench compares the library with what a program would use without it: each row of a table is some work, done by
// both in turns, in this process, and what is printed is the ratio of the two. Smaller is better.
//
//	go run . -quick                       all rows, in less than four minutes
//	go run . -quick mutex cancel-cost     rows by id; what precedes a slash stands for all of them
//	go run . -full -json now.json         longer rounds, and the figures to a file
//	go run . -quick -against then.json    which ratios have become worse by more than their spread
//
// A line is: id, ours and the peer's (medians, of one operation), the median of the ratios with the range of
// them, the worst and the best left out, what the ratio must be and what it ought to be.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

func rows() []row {
	return slices.Concat(mvarRows, mutexRows, readyRows, spawnRows, selectRows, cancelRows, memoryRows, netRows, fibserverRows)
}

// A run is what -json writes and -against reads.
type run struct {
	Date    time.Time `json:"date"`
	Go      string    `json:"go"`
	System  string    `json:"system"`
	Procs   int       `json:"gomaxprocs"`
	Mode    mode      `json:"mode"`
	Results []result  `json:"results"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == driveArg {
		exitOn(drive(os.Args[2:]))
		return
	}
	isQuick := flag.Bool("quick", false, "short rounds (the default)")
	isFull := flag.Bool("full", false, "long rounds")
	out := flag.String("json", "", "write the results to this `file`")
	against := flag.String("against", "", "compare the ratios with those of this `file`, written by -json")
	profile := flag.String("cpuprofile", "", "write a profile of the processor, of both sides, to this `file`")
	flag.Parse()
	m := quick
	if *isFull && !*isQuick {
		m = full
	}
	chosen, err := choose(rows(), flag.Args())
	exitOn(err)
	if *profile != "" {
		f, err := os.Create(*profile)
		exitOn(err)
		exitOn(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	now := run{time.Now(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.GOMAXPROCS(0), m, nil}
	for _, r := range chosen {
		res, err := measure(r, m)
		if err != nil {
			fmt.Printf("%-22s not measured: %v\n", r.id, err)
			continue
		}
		fmt.Println(res)
		now.Results = append(now.Results, res)
	}
	if *out != "" {
		text, err := json.MarshalIndent(now, "", "\t")
		exitOn(err)
		exitOn(os.WriteFile(*out, append(text, '\n'), 0o644))
	}
	if *against != "" {
		text, err := os.ReadFile(*against)
		exitOn(err)
		var then run
		exitOn(json.Unmarshal(text, &then))
		if regressed(now.Results, then.Results) {
			pprof.StopCPUProfile()
			os.Exit(1)
		}
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// choose returns the rows that have one of ids, or one of ids before a slash; without ids, all.
func choose(all []row, ids []string) ([]row, error) {
	if len(ids) == 0 {
		return all, nil
	}
	matches := func(r row, id string) bool { return r.id == id || strings.HasPrefix(r.id, id+"/") }
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(r row) bool { return matches(r, id) }) {
			return nil, fmt.Errorf("there is no row %q", id)
		}
	}
	return slices.DeleteFunc(all, func(r row) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return matches(r, id) })
	}), nil
}

// regressed prints how the ratios have changed, and reports whether one has become worse by more than the spread: all
// of its range now lies above all of its range then.
func regressed(now, then []result) (any bool) {
	fmt.Println()
	for _, r := range now {
		i := slices.IndexFunc(then, func(old result) bool { return old.ID == r.ID })
		if i < 0 {
			fmt.Printf("%-22s new\n", r.ID)
			continue
		}
		old, word := then[i], "same"
		switch {
		case r.Low > old.High:
			word, any = "REGRESSED", true
		case r.High < old.Low:
			word = "better"
		}
		fmt.Printf("%-22s %.2f [%.2f–%.2f] was %.2f [%.2f–%.2f] %s\n", r.ID, r.Ratio, r.Low, r.High, old.Ratio, old.Low, old.High, word)
	}
	return any
}
