package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// A curve measures the cost of the same work, done in several ways, as a function of the size of the work. The series take turns in each
// round, as the sides of a row do. A point contains the median, the minimum and the maximum of its rounds.
type curve struct {
	figure
	series       []string
	cold         bool      // each round starts from scratch and needs no warm-up
	points, tiny []float64 // sizes of the work; tests use the field tiny
	// open returns a side for each series. A nil side means that this machine lacks the memory or a program for the series.
	open func(b *bench, x float64) []side
}

// A figure describes a curve.
type figure struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	About  string   `json:"about"` // one or two sentences
	X      string   `json:"x"`
	LogX   bool     `json:"log_x,omitempty"`
	Names  []string `json:"names,omitempty"` // names for the numbers 0, 1, … on the axis
	Y      string   `json:"y"`
	LogY   bool     `json:"log_y,omitempty"`
	Rounds int      `json:"rounds"`
}

// A curveResult holds the points of a curve, and notes that explain missing points.
type curveResult struct {
	figure
	Series []curveSeries `json:"series"`
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
	res, points := curveResult{figure: c.figure}, c.points
	if m.Tiny {
		res.Rounds, points = 1, c.tiny
	}
	for _, s := range c.series {
		res.Series = append(res.Series, curveSeries{Name: s})
	}
	late, noted := func() bool { return time.Since(begun) > patience }, false
	for _, x := range points {
		if late() && !noted {
			res.Notes = append(res.Notes, fmt.Sprintf("Only one round from %s on: the first %v had passed.", res.Name(x), patience))
			noted = true
		}
		if err := c.point(&res, m, late, x); err != nil {
			return res, fmt.Errorf("at %v: %w", x, err)
		}
		fmt.Fprint(progress, res.line(x))
	}
	res.Took = time.Since(begun)
	return res, nil
}

func (c curve) point(res *curveResult, m mode, late func() bool, x float64) (err error) {
	defer caught(&err)
	b := &bench{mode: m}
	defer b.end()
	for i, v := range interleave(c.open(b, x), res.Rounds, c.cold, late) {
		if len(v) > 0 {
			points := &res.Series[i].Points
			*points = append(*points, curvePoint{x, median(v), slices.Min(v), slices.Max(v), v})
		}
	}
	for _, note := range b.notes {
		if !slices.Contains(res.Notes, note) {
			res.Notes = append(res.Notes, note)
		}
	}
	return nil
}

// line returns the line that is printed for the points at x.
func (r curveResult) line(x float64) string {
	line := fmt.Sprintf("%-16s %8s", r.ID, r.Name(x))
	for _, s := range r.Series {
		if p := s.At(x); p != nil {
			line += fmt.Sprintf("  %s: %.4g [%.4g–%.4g]", s.Name, p.Median, p.Min, p.Max)
		}
	}
	return line + "\n"
}

// Name returns the name or the digits of x.
func (f figure) Name(x float64) string {
	if len(f.Names) > 0 {
		return f.Names[int(x)]
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// At returns the point at x, or nil.
func (s curveSeries) At(x float64) *curvePoint {
	if i := slices.IndexFunc(s.Points, func(p curvePoint) bool { return p.X == x }); i >= 0 {
		return &s.Points[i]
	}
	return nil
}

// Xs returns the sorted values of x for which r has points.
func (r curveResult) Xs() (all []float64) {
	for _, s := range r.Series {
		for _, p := range s.Points {
			all = append(all, p.X)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// save writes the table and the plot of a curve to dir.
func (r curveResult) save(dir string) {
	var table bytes.Buffer
	w := csv.NewWriter(&table)
	_ = w.Write([]string{"series", r.X, "median", "min", "max", "rounds"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, s := range r.Series {
		for _, p := range s.Points {
			_ = w.Write([]string{s.Name, r.Name(p.X), number(p.Median), number(p.Min), number(p.Max), strconv.Itoa(len(p.Rounds))})
		}
	}
	w.Flush()
	ok(os.MkdirAll(dir, 0o755))
	ok(os.WriteFile(filepath.Join(dir, r.ID+".csv"), table.Bytes(), 0o644))
	r.plot(filepath.Join(dir, r.ID+".svg"))
}
