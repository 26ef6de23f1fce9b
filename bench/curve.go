package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A curve measures the cost of the same work, done in several ways, as a function of the size of the work. The series take turns in each
// round, as the sides of a row do. A point contains the median, the minimum and the maximum of its rounds.
type curve struct {
	id, title    string
	about        string // describes the curve in one or two sentences
	x, y         axis
	series       []string
	rounds       int
	cold         bool      // each round starts from scratch and needs no warm-up
	points, tiny []float64 // sizes of the work; tests use the field tiny
	// open returns a measurement for each series. A nil measurement means that this machine lacks the memory or a program for the series.
	open func(b *bench, x float64) []measurement
}

type axis struct {
	label string
	log   bool
	names []string // names for the numbers 0, 1, … on the axis
}

type measurement = func() float64

func (c curve) at(m mode) []float64 {
	if m.Tiny {
		return c.tiny
	}
	return c.points
}

// A curveResult holds the points of a curve, and notes that explain missing points.
type curveResult struct {
	ID     string        `json:"id"`
	Title  string        `json:"title"`
	About  string        `json:"about"`
	X      string        `json:"x"`
	LogX   bool          `json:"log_x,omitempty"`
	Names  []string      `json:"names,omitempty"`
	Y      string        `json:"y"`
	LogY   bool          `json:"log_y,omitempty"`
	Series []curveSeries `json:"series"`
	Rounds int           `json:"rounds"`
	Notes  []string      `json:"notes,omitempty"`
	Took   time.Duration `json:"took"`
}

type curveSeries struct {
	Name   string       `json:"name"`
	Points []curvePoint `json:"points"`
}

type curvePoint struct {
	X      float64   `json:"x"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"`
}

// After the time patience, the remaining points of a curve have only one round, so that a slow machine finishes in an acceptable time.
const patience = 75 * time.Second

// trace measures the curve, and writes each point to the writer progress.
func (c curve) trace(m mode, progress io.Writer) (curveResult, error) {
	begun := time.Now()
	rounds := c.rounds
	if m.Tiny {
		rounds = 1
	}
	res := curveResult{ID: c.id, Title: c.title, About: c.about, X: c.x.label, LogX: c.x.log, Names: c.x.names, Y: c.y.label, LogY: c.y.log, Rounds: rounds}
	for _, s := range c.series {
		res.Series = append(res.Series, curveSeries{Name: s})
	}
	late := func() bool { return time.Since(begun) > patience }
	for _, x := range c.at(m) {
		if late() {
			res.note(fmt.Sprintf("One round only from %s on: the first %v were over.", res.name(x), patience), "One round only")
		}
		if err := c.point(&res, m, rounds, late, x); err != nil {
			return res, fmt.Errorf("at %v: %w", x, err)
		}
		fmt.Fprint(progress, res.at(x))
	}
	res.Took = time.Since(begun)
	return res, nil
}

func (c curve) point(res *curveResult, m mode, rounds int, late func() bool, x float64) (err error) {
	defer caught(&err)
	b := &bench{mode: m}
	defer b.end()
	sides := c.open(b, x)
	for _, note := range b.notes {
		res.note(note, note)
	}
	all := make([][]float64, len(c.series))
	interleave(sides, rounds, c.cold, late, func(i int, v float64) { all[i] = append(all[i], v) })
	for i, v := range all {
		if len(v) > 0 {
			points := &res.Series[i].Points
			*points = append(*points, curvePoint{x, median(v), slices.Min(v), slices.Max(v), v})
		}
	}
	return nil
}

// note adds a note, unless r already has a note that starts with the argument begin.
func (r *curveResult) note(note, begin string) {
	if !slices.ContainsFunc(r.Notes, func(old string) bool { return strings.HasPrefix(old, begin) }) {
		r.Notes = append(r.Notes, note)
	}
}

// at returns the line that is printed for the points at x.
func (r curveResult) at(x float64) string {
	line := fmt.Sprintf("%-16s %8s", r.ID, r.name(x))
	for _, s := range r.Series {
		v := "-"
		if p, ok := s.at(x); ok {
			v = fmt.Sprintf("%.4g [%.4g–%.4g]", p.Median, p.Min, p.Max)
		}
		line += fmt.Sprintf("  %s: %s", s.Name, v)
	}
	return line + "\n"
}

func (r curveResult) name(x float64) string {
	if len(r.Names) > 0 {
		return r.Names[int(x)]
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

func (s curveSeries) at(x float64) (curvePoint, bool) {
	i := slices.IndexFunc(s.Points, func(p curvePoint) bool { return p.X == x })
	if i < 0 {
		return curvePoint{}, false
	}
	return s.Points[i], true
}

// xs returns the sorted values of x for which r has points.
func (r curveResult) xs() (all []float64) {
	for _, s := range r.Series {
		for _, p := range s.Points {
			all = append(all, p.X)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// save writes the table and the plot of a curve to dir.
func (r curveResult) save(dir string) (err error) {
	defer caught(&err)
	ok(os.MkdirAll(dir, 0o755))
	f := must(os.Create(filepath.Join(dir, r.ID+".csv")))
	defer f.Close()
	w := csv.NewWriter(f)
	_ = w.Write([]string{"series", r.X, "median", "min", "max", "rounds"})
	for _, s := range r.Series {
		for _, p := range s.Points {
			_ = w.Write([]string{s.Name, r.name(p.X), number(p.Median), number(p.Min), number(p.Max), strconv.Itoa(len(p.Rounds))})
		}
	}
	r.plot(filepath.Join(dir, r.ID+".svg"))
	w.Flush()
	ok(w.Error())
	return nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// taskBytes is an upper bound for the memory of a waiting task or goroutine and its context. The bound limits the number of tasks that are
// tried on this machine.
const taskBytes = 6 << 10

// fits sets a side to nil and adds a note if the n tasks of the side might need more than three fifths of the available memory.
func (b *bench) fits(sides []measurement, n int, bytes ...int) {
	room := int(availableMemory() * 3 / 5)
	for i, each := range bytes {
		if room > 0 && n > room/each {
			sides[i] = nil
			b.note(fmt.Sprintf("%d tasks or goroutines are too many for the memory of this machine, of which %d MB are available: left out.",
				n, availableMemory()>>20))
		}
	}
}
