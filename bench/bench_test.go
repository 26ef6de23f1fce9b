package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tiny is so short that its results mean nothing.
var tiny = mode{Rounds: 1, Round: time.Millisecond, Tiny: true}

// TestMain lets rows and curves start their clients and servers, which are this program with other arguments.
func TestMain(m *testing.M) {
	if isHelper() {
		return
	}
	code := m.Run()
	_ = os.RemoveAll(scratchDir)
	os.Exit(code)
}

// TestRows measures every row, with sizes that are too small for a meaningful result.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		t.Run(r.id, func(t *testing.T) {
			if seen[r.id] {
				t.Fatal("twice")
			}
			seen[r.id] = true
			res, err := measured(r, tiny)
			if err != nil {
				t.Fatal(err)
			}
			if res.Against == "" || res.Unit == "" || len(res.Ratios) != 1 || math.IsNaN(res.Ratio) || math.IsInf(res.Ratio, 0) ||
				res.Ratio <= 0 && res.Unit != "bytes" { // with so few bytes, the garbage of other tests counts for more

				t.Errorf("%+v", res)
			}
		})
	}
}

// TestTableOfCores measures each cell of the table once, with few operations.
func TestTableOfCores(t *testing.T) {
	var out strings.Builder
	tableOfCores(&out, 3, 0, true)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(scalings)+2 || lines[0] != "| | 1 | 2 | 3 |" {
		t.Fatal(out.String())
	}
	for i, s := range scalings {
		cell := ` [0-9]+ \|`
		if s.peer != nil {
			cell = ` [0-9]+ : [0-9]+ \|`
		}
		if !regexp.MustCompile(`^\| ` + regexp.QuoteMeta(s.title) + ` \|(` + cell + `){3}$`).MatchString(lines[i+2]) {
			t.Error(lines[i+2])
		}
	}
}

// TestCurves measures, saves and draws every curve. Each series has each point.
func TestCurves(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for _, r := range rows() {
		seen[r.id] = true
	}
	for _, c := range curves() {
		t.Run(c.ID, func(t *testing.T) {
			if seen[c.ID] {
				t.Fatal("the id of another row or curve")
			}
			seen[c.ID] = true
			var progress strings.Builder
			res, err := c.trace(tiny, &progress)
			if err != nil {
				t.Fatal(err)
			}
			points := c.tiny
			for _, s := range res.Series {
				if len(s.Points) != len(points) && !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "not installed") }) {
					t.Errorf("%s: %d of %d points", s.Name, len(s.Points), len(points))
				}
			}
			if n := strings.Count(progress.String(), "\n"); n != len(points) {
				t.Errorf("%d lines of progress", n)
			}
			res.save(dir)
			file := func(name string) []byte { return must(os.ReadFile(filepath.Join(dir, c.ID+name))) }
			table := file(".csv")
			if want := 1 + len(points)*len(c.series); bytes.Count(table, []byte("\n")) != want && len(res.Notes) == 0 {
				t.Errorf("want %d lines:\n%s", want, table)
			}
			if !bytes.Contains(file(".svg"), []byte("</svg>")) {
				t.Error("no SVG")
			}
		})
	}
}

// The two sides take turns in each round, a different one is first in each, and a warm-up does not count.
func TestInterleave(t *testing.T) {
	var order strings.Builder
	one := func(name string) side {
		return func() float64 { order.WriteString(name); return float64(order.Len()) }
	}
	sides := []side{one("a"), one("b"), nil, one("c")}
	got := interleave(sides, 2, false, func() bool { return false })
	if order.String() != "abc"+"bca"+"cab" || !slices.Equal(got[0], []float64{6, 8}) || !slices.Equal(got[3], []float64{5, 7}) {
		t.Errorf("%s, %v", order.String(), got)
	}
	order.Reset()
	if interleave(sides, 2, true, func() bool { return true }); order.String() != "bca" {
		t.Error(order.String())
	}
}

// measured measures one row.
func measured(r row, m mode) (res result, err error) {
	measureRows([]row{r}, m, func(r result, e error) { res, err = r, e })
	return res, err
}

// has returns a row whose sides measure the given values, one after another.
func has(ours, peer []float64, r row) row {
	next := func(v *[]float64) side {
		return func() float64 { x := (*v)[0]; *v = (*v)[1:]; return x }
	}
	r.open = func(b *bench) (side, side) { b.note("n"); return next(&ours), next(&peer) }
	return r
}

// The ratio is the median of the ratios of the rounds, not the ratio of the medians. Its range leaves out one value at either
// end.
func TestMeasure(t *testing.T) {
	// There are a warm-up and four rounds, and in another lap one more round.
	res, err := measured(has([]float64{0, 1, 2, 3, 4, 0, 100}, []float64{0, 1, 1, 1, 1, 0, 1}, row{id: "x", rounds: 5, must: 101}), quick)
	if err != nil || res.Ratio != 3 || res.Low != 2 || res.High != 4 || res.Ours != 3 || res.Note != "n" || res.Verdict() != "ok" {
		t.Errorf("%+v, %v", res, err)
	}
	res.Must = 2.9
	if res.Verdict() != "SHORT" {
		t.Error(res.Verdict())
	}
	if res.Must = 0; res.Verdict() != "-" || !strings.Contains(res.String(), "must=- aim=- - (n)") {
		t.Error(res)
	}
}

// A row that is close to its limit gets more rounds, on either side of the limit, until the result is certain.
func TestUndecided(t *testing.T) {
	ones := slices.Repeat([]float64{1}, 100)
	for _, more := range []float64{0.8, 1.2} {
		ours := slices.Concat([]float64{0.9, 0.9, 1.1, 1.1}, slices.Repeat([]float64{more}, 100))
		x := newTrial(has(ours, ones, row{rounds: 4, must: 1, cold: true}), quick)
		for range 3 {
			if x.done() {
				t.Errorf("%v is taken for certain", x.ratios)
			}
			if err := x.lap(); err != nil {
				t.Fatal(err)
			}
		}
		if !x.done() || len(x.ratios) != 12 || x.result().Verdict() != map[bool]string{true: "SHORT", false: "ok"}[more > 1] {
			t.Errorf("%v: %+v", x.ratios, x.result())
		}
	}
	x := newTrial(has(slices.Repeat([]float64{0.9, 1.1}, 50), ones, row{rounds: 4, must: 1, cold: true}), quick)
	for x.extra = longer - 1; !x.done(); {
		if err := x.lap(); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.ratios) != 8 {
		t.Errorf("%d rounds, though the time was over", len(x.ratios))
	}
	if low, high := confidence([]float64{3, 1, 2}); low != 1 || high != 3 {
		t.Error(low, high)
	}
	if low, high := confidence(ones[:1]); low != 1 || high != 1 {
		t.Error(low, high)
	}
	many := make([]float64, 100)
	for i := range many {
		many[i] = float64(i)
	}
	if low, high := confidence(many); low != 39 || high != 60 { // the 40th and the 61st of 100
		t.Error(low, high)
	}
}

// Between two laps of a row, the other rows have a lap. A row that cannot be opened does not prevent this, and is closed.
func TestLaps(t *testing.T) {
	var order strings.Builder
	named := func(id string, rounds int) row {
		one := func() float64 { order.WriteString(id); return 1 }
		return row{id: id, rounds: rounds, cold: true, open: func(*bench) (side, side) { return one, one }}
	}
	broken := row{id: "c", open: func(b *bench) (side, side) {
		b.close(func() { order.WriteString("!") })
		ok(os.ErrInvalid)
		return nil, nil
	}}
	measureRows([]row{named("a", 6), broken, named("b", 4)}, quick, func(res result, err error) {
		order.WriteString("," + res.ID)
		if (err != nil) != (res.ID == "c") || res.ID != "c" && res.Ratio != 1 {
			t.Error(res, err)
		}
	})
	if got, want := order.String(), "aaaaaaaa!,cbbbbbbbb,baaaa,a"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A gauge measures only the part of a benchmark that counts. It finds the number of operations once, and again if the number was
// too small.
func TestGauge(t *testing.T) {
	const ms = float64(time.Millisecond)
	now, calls, stalled := 0.0, []int{}, false
	g := &gauge{"ns", func() float64 { return now }}
	f := func(n int) {
		calls = append(calls, n)
		now += 7 * ms // does not count
		restart()
		if now += float64(n) * ms; stalled {
			now, stalled = now+1000*ms, false
		}
		stop()
		now += 7 * ms
	}
	s := g.of(f, 2, 100*time.Millisecond)
	for range 2 {
		if v := s(); v != ms/2 {
			t.Error(v)
		}
	}
	if !slices.Equal(calls, []int{1, 2, 4, 8, 16, 32, 100, 100}) {
		t.Error(calls)
	}
	calls, stalled = nil, true // at first
	if v := g.of(f, 1, 100*time.Millisecond)(); v != ms || !slices.Equal(calls, []int{1, 1, 10, 100}) {
		t.Error(v, calls)
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		full         bool
		ids          string
		rows, curves int
		fails        bool
	}{
		{false, "", 3, 0, false}, {true, "", 3, 1, false}, {false, "a", 2, 0, false}, {true, "a/x", 1, 0, false},
		{true, "c ab", 1, 1, false}, {false, "c", 0, 0, true}, {true, "a d", 0, 0, true},
	} {
		all, traced := []row{{id: "a"}, {id: "a/x"}, {id: "ab"}}, []curve{{figure: figure{ID: "c"}}}
		if !c.full {
			traced = nil
		}
		r, k, err := choose(all, traced, strings.Fields(c.ids))
		if len(r) != c.rows || len(k) != c.curves || (err != nil) != c.fails {
			t.Errorf("%+v: %d rows, %d curves, %v", c, len(r), len(k), err)
		}
	}
}

// The report has everything that a run measures.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	points := []curvePoint{{X: 10, Median: 1.234, Min: 1, Max: 2, Rounds: []float64{1, 1.234, 2}}}
	r := run{
		Date: time.Unix(0, 0), Took: time.Minute, Command: "go run . -full", Mode: full,
		Machine: machine{CPU: "a processor", Processors: 2, Go: "go1", Load: "0.1 0.2 0.3"},
		Results: []result{
			{ID: "reached", Against: "peer", Unit: "ns", Ours: 1, Peer: 2, Ratio: 0.5, Low: 0.4, High: 0.6, Must: 1, Aim: 0.5, Ratios: []float64{0.5}},
			{ID: "missed", Against: "peer", Unit: "ns", Ours: 2, Peer: 1, Ratio: 2, Low: 2, High: 2, Must: 1, Ratios: []float64{2}},
			{ID: "open", Against: "peer", Unit: "bytes", Ours: 2, Peer: 1, Ratio: 2, Low: 2, High: 2, Note: "a note", Ratios: []float64{2}},
		},
		Curves: []curveResult{{figure: figure{ID: "c", Title: "A curve", About: "About it.", X: "n", Y: "label", Rounds: 3},
			Notes: []string{"Less than there should be."}, Series: []curveSeries{{"one", points}, {"none", nil}}}},
		Failed: []string{"row: not here"},
	}
	r.replace(run{Date: time.Unix(3600, 0), Command: "go run . open", Machine: machine{Load: "4", LoadAfter: "5"},
		Results: []result{{ID: "open", Against: "peer", Unit: "bytes", Ours: 3, Peer: 1, Ratio: 3, Low: 3, High: 3, Note: "a note", Ratios: []float64{3}}}})
	report := filepath.Join(dir, "RESULTS.md")
	writeReport(report, r)
	text := string(must(os.ReadFile(report)))
	for _, want := range []string{
		"[analysis.md](", "1970-01-01 00:00 UTC", "`go run . -full`", "a processor, 2 processors", "0.1 0.2 0.3",
		"| reached | peer | 1.00ns | 2.00ns | **0.50** | 0.40–0.60 | 1 | 1.00 | 0.50 | ok |",
		"| open | peer (a note) | 3.0B | 1.0B | **3.00** | 3.00–3.00 | 1 | - | - | - |",
		"- open: measured 1970-01-01 01:00 UTC by `go run . open`, at loads of 4 and 5.",
		"1 of 2 rows with a must reach it. SHORT: missed.",
		"### c: A curve", "About it. 3 rounds. [Table](results/c.csv)", "Less than there should be.", "](results/c.svg)",
		"| n | one | none |", "| 10 | 1.23 [1.00–2.00] | |", "- row: not here",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The page about the papers names only rows and curves that exist.
func TestPapers(t *testing.T) {
	page := string(must(os.ReadFile("../docs/papers.md")))
	commands := regexp.MustCompile("`go run \\. -(full|quick) ([^`]+)`").FindAllStringSubmatch(page, -1)
	if len(commands) < 10 {
		t.Errorf("%d commands", len(commands))
	}
	for _, c := range commands {
		chosen, traced, err := choose(rows(), curves(), strings.Fields(c[2]))
		if err != nil || c[1] == "quick" && len(traced) > 0 || c[1] == "full" && len(chosen) > 0 {
			t.Errorf("%s: %d rows, %d curves, %v", c[0], len(chosen), len(traced), err)
		}
	}
}

// A value that has no place on a logarithmic axis is left out of the plot. A curve without values is drawn empty.
func TestPlotOfOddValues(t *testing.T) {
	r := curveResult{figure: figure{ID: "odd", Title: "t", X: "x", LogX: true, Y: "y", LogY: true}, Series: []curveSeries{
		{"zero", []curvePoint{{X: 0, Median: 1, Min: 1, Max: 1}, {X: 1, Median: 0}}}, {"none", nil}}}
	for range 2 {
		r.save(t.TempDir())
		r.Series[0].Points = append(r.Series[0].Points, curvePoint{X: 10, Median: 2, Min: 2, Max: 2})
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1.2345: "1.23", 12.345: "12.3", 123.45: "123", 123456: "123456"} {
		if got := digits(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
