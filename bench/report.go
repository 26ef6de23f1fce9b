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
		System: runtime.GOOS + "/" + runtime.GOARCH, Load: loadAverage(), CPU: field("/proc/cpuinfo", "model name")}
	_, _ = fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d kB", &m.MemoryMB)
	m.MemoryMB >>= 10
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Kernel = string(bytes.TrimSpace(kernel))
	return m
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

var (
	//go:embed results.tmpl
	reportText string

	reportForm = template.Must(template.New("report").Funcs(template.FuncMap{
		"bound": bound, "digits": digits, "show": show,
		"capital": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
		"gib":     func(megabytes uint64) string { return fmt.Sprintf("%.0f GiB", math.Round(float64(megabytes)/1024)) },
	}).Parse(reportText))
)

// writeReport writes the report to a file, and overwrites the file if it exists. The tables and plots of the curves go to the directory
// results beside it. Handwritten text belongs in docs/maintainers/analysis.md, to which the report refers.
func writeReport(name string, r run) {
	beside := filepath.Dir(name)
	x := struct {
		run
		Reached, Bound int // the numbers of rows within their must and of all rows with a must
		Short          string
		Longer         time.Duration
	}{run: r, Longer: longer}
	var short []string
	for _, row := range r.Results {
		switch row.Verdict() {
		case "ok":
			x.Reached++
		case "SHORT":
			short = append(short, row.ID)
		}
	}
	x.Bound, x.Short = x.Reached+len(short), strings.Join(short, ", ")
	var text bytes.Buffer
	ok(reportForm.Execute(&text, x))
	ok(os.WriteFile(name, append(bytes.TrimRight(text.Bytes(), "\n"), '\n'), 0o644))
	for _, c := range r.Curves {
		c.save(filepath.Join(beside, "results"))
	}
}

func (r run) When() string { return r.Date.UTC().Format("2006-01-02 15:04 UTC") }

func (r run) Lasted() time.Duration { return r.Took.Round(time.Second) }

// digits formats v with three significant digits, or as an integer from 100 on.
func digits(v float64) string {
	if v == 0 || math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))), v)
}
