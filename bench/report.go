package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"
)

// A machine describes the computer on which a run was measured.
type machine struct {
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	Gomaxprocs int    `json:"gomaxprocs"`
	MemoryMB   uint64 `json:"memory_mb"` // 0 means unknown
	Kernel     string `json:"kernel"`
	System     string `json:"system"`
	Go         string `json:"go"`
	Load       string `json:"load,omitempty"` // the load averages before the run
	LoadAfter  string `json:"load_after,omitempty"`
}

func thisMachine() machine {
	m := machine{Processors: runtime.NumCPU(), Gomaxprocs: runtime.GOMAXPROCS(0), Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Load: loadAverage()}
	m.CPU = field("/proc/cpuinfo", "model name")
	_, _ = fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d kB", &m.MemoryMB)
	m.MemoryMB >>= 10
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Kernel = string(bytes.TrimSpace(kernel))
	return m
}

func (m machine) String() string {
	s := m.CPU
	if s == "" {
		s = "unknown processor"
	}
	s += fmt.Sprintf(", %d processors, ", m.Processors)
	if m.MemoryMB > 0 {
		s += fmt.Sprintf("%.0f GiB, ", math.Round(float64(m.MemoryMB)/1024))
	}
	if m.Kernel != "" {
		s += "kernel " + m.Kernel + ", "
	}
	return s + fmt.Sprintf("%s %s, GOMAXPROCS %d", m.Go, m.System, m.Gomaxprocs)
}

// field returns the value of the first line of the form "name: value" in a file.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage returns the load averages of the last minute, five minutes and fifteen minutes.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(text))
	return strings.Join(f[:min(3, len(f))], " ")
}

// analysis is the name of a file that is written by hand and lies beside the report.
const analysis = "ANALYSIS.md"

// writeReport writes the report to a file, and overwrites the file if it exists. Handwritten text belongs in the analysis file beside the
// report.
func writeReport(name, dir string, r run) error {
	plots, err := filepath.Rel(filepath.Dir(name), dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(filepath.Dir(name), analysis))
	return os.WriteFile(name, []byte(reportOf(r, filepath.ToSlash(plots), err == nil)), 0o644)
}

//go:embed results.tmpl
var reportText string

// A reported is the data for the template: a run, and values derived from it.
type reported struct {
	run
	Analysis, Plots, Short string
	Analysed               bool
	Reached, Bound         int // the numbers of rows within their must and of all rows with a must
	Longer                 time.Duration
}

func reportOf(r run, plots string, analysed bool) string {
	x := reported{run: r, Analysis: analysis, Plots: plots, Analysed: analysed, Longer: longer}
	var short []string
	for _, row := range r.Results {
		switch row.verdict() {
		case "ok":
			x.Reached++
		case "SHORT":
			short = append(short, row.ID)
		}
	}
	x.Bound, x.Short = x.Reached+len(short), strings.Join(short, ", ")
	var b strings.Builder
	ok(template.Must(template.New("report").Parse(reportText)).Execute(&b, x))
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (x reported) When() string { return when(x.run) }

func when(r run) string { return r.Date.UTC().Format("2006-01-02 15:04 UTC") }

func (x reported) Lasted() time.Duration { return x.run.Took.Round(time.Second) }

// Cells returns the row's line in the report's table.
func (r result) Cells() string {
	against := r.Against
	if r.Note != "" {
		against += " (" + r.Note + ")"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | **%.2f** | %.2f–%.2f | %d | %s | %s | %s |", r.ID, against,
		show(r.Ours, r.Unit), show(r.Peer, r.Unit), r.Ratio, r.Low, r.High, len(r.Ratios), bound(r.Must), bound(r.Aim), r.verdict())
}

// Caption returns the name of the measured quantity, with a capital letter.
func (r curveResult) Caption() string { return strings.ToUpper(r.Y[:1]) + r.Y[1:] }

// Lines returns the lines of the table, a line for each x with the values of all series.
func (r curveResult) Lines() (all []string) {
	for _, x := range r.xs() {
		line := "| " + r.name(x) + " |"
		for _, s := range r.Series {
			if v, found := s.at(x); found {
				line += fmt.Sprintf(" %s [%s–%s]", digits(v.Median), digits(v.Min), digits(v.Max))
			}
			line += " |"
		}
		all = append(all, line)
	}
	return all
}

// digits formats v with three significant digits, or as an integer from 100 on.
func digits(v float64) string {
	if v == 0 || math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))), v)
}
