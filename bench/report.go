package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A machine is where a run was.
type machine struct {
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	Gomaxprocs int    `json:"gomaxprocs"`
	MemoryMB   uint64 `json:"memory_mb"` // 0: unknown
	Kernel     string `json:"kernel"`
	System     string `json:"system"`
	Go         string `json:"go"`
	Load       string `json:"load,omitempty"` // load averages before and after
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

func (m machine) like(other machine) bool {
	return m.CPU == other.CPU && m.Gomaxprocs == other.Gomaxprocs && m.Go == other.Go && m.System == other.System
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

// field is the value of the first line of a file that begins with name and a colon.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage is that of the last minute, five and fifteen.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(text))
	return strings.Join(f[:min(3, len(f))], " ")
}

// analysis is the file beside the report that is written by hand.
const analysis = "ANALYSIS.md"

// writeReport writes all of name. The text written by hand is in the analysis beside it.
func writeReport(name, dir string, r run) error {
	plots, err := filepath.Rel(filepath.Dir(name), dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(filepath.Dir(name), analysis))
	return os.WriteFile(name, []byte(reportOf(r, filepath.ToSlash(plots), err == nil)), 0o644)
}

func reportOf(r run, plots string, analysed bool) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Results\n\n")
	p("<!-- Written by go run . -results: do not edit. What there is to say is in %s. -->\n\n", analysis)
	if analysed {
		p("How to read these figures: [%s](%s).\n\n", analysis, analysis)
	}
	p("- Measured %s in %s by `%s`.\n", r.Date.UTC().Format("2006-01-02 15:04 UTC"), r.Took.Round(time.Second), r.Command)
	p("- On %s.\n", r.Machine)
	if r.Machine.Load != "" {
		p("- Load averages before: %s; after, with the benchmark's own: %s.\n", r.Machine.Load, r.Machine.LoadAfter)
	}
	p("- Again, in this directory: `go run . -quick` measures the rows, `go run . -full -json FILE -results RESULTS.md` all of this, " +
		"`go run . -quick -against history` lists the ratios that have become worse; ids after that choose.\n\n")
	if len(r.Results) > 0 {
		p("## Rows\n\n")
		p("Ours and the peer's are medians of one operation. The ratio is the median of the ratios of the rounds, in each of which both are "+
			"measured one right after the other; the range leaves out the best and the worst round where there are more than four. Smaller is better. "+
			"The comment of a row in the source says what it counts. Rounds are of %v, unless a row has its own measure. They are had in laps: all rows "+
			"have some of theirs before any has the next. A row whose must lies within its error has more of them, for %v at most.\n\n",
			r.Mode.Round, longer)
		p("| id | against | ours | peer | ratio | range | rounds | must | aim | verdict |\n|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
		count := map[string]int{}
		for _, x := range r.Results {
			against := x.Against
			if x.Note != "" {
				against += " (" + x.Note + ")"
			}
			p("| %s | %s | %s | %s | **%.2f** | %.2f–%.2f | %d | %s | %s | %s |\n", x.ID, against,
				show(x.Ours, x.Unit), show(x.Peer, x.Unit), x.Ratio, x.Low, x.High, len(x.Ratios), bound(x.Must), bound(x.Aim), x.verdict())
			count[x.verdict()]++
		}
		p("\n%d of %d rows with a must reach it.", count["ok"], count["ok"]+count["SHORT"])
		var short []string
		for _, x := range r.Results {
			if x.verdict() == "SHORT" {
				short = append(short, x.ID)
			}
		}
		if len(short) > 0 {
			p(" SHORT: %s.", strings.Join(short, ", "))
		}
		p("\n\n")
	}
	if len(r.Curves) > 0 {
		p("## Curves\n\nMedians of the rounds, and in brackets the least and the greatest, as the bars in the plots.\n\n")
	}
	for _, c := range r.Curves {
		c.report(&b, plots)
	}
	if len(r.Failed) > 0 {
		p("## Not measured\n\n")
		for _, f := range r.Failed {
			p("- %s\n", f)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (c curveResult) report(b *strings.Builder, plots string) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	p("### %s: %s\n\n%s %d rounds. [Table](%s/%s.csv).\n", c.ID, c.Title, c.About, c.Rounds, plots, c.ID)
	for _, note := range c.Notes {
		p("%s\n", note)
	}
	for _, f := range c.Figures {
		file := plots + "/" + c.ID + "-" + f.Name
		p("\n![%s](%s.svg)\n\n", f.Label, file)
		p("%s ([PNG](%s.png)):\n\n| %s |", strings.ToUpper(f.Label[:1])+f.Label[1:], file, c.X)
		for _, s := range f.Series {
			p(" %s |", s.Name)
		}
		p("\n|--:|%s\n", strings.Repeat("--:|", len(f.Series)))
		for _, x := range c.xs() {
			p("| %s |", c.name(x))
			for _, s := range f.Series {
				v, ok := s.at(x)
				if !ok {
					p(" |")
					continue
				}
				p(" %s [%s–%s] |", digits(v.Median), digits(v.Min), digits(v.Max))
			}
			p("\n")
		}
	}
	p("\n")
}

// digits is v with three of them, or all before the point.
func digits(v float64) string {
	if v == 0 || math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))), v)
}
