// Package view shows the figures of stages as text, as JSON, and as a web page that loads nothing from other servers.
package view

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/braidgo/braid/stage"
)

//go:embed page.html
var page []byte

// A Row has the figures of one stage. A is the number of tasks that arrive per second, S the number completed per second, L the time
// of one task, and W the width.
type Row struct {
	Name                         string
	A, S                         float64 // per second
	Rejected, Late, Failed       float64 // per second
	Waiting, Busy, Delayed       int
	Outside, W, Queue            int
	L, L99, Wait50, Wait99       float64 // milliseconds
	Utilisation                  float64 // S·L/W
	Reason                       string  `json:",omitempty"` // the reason of the last change of W
	Bottleneck                   string  `json:",omitempty"`
	TotalCompleted, TotalArrived uint64
	TotalRejected, TotalLate     uint64
	TotalFailed, TotalCancelled  uint64
}

// Rows returns a row for each stage in the snapshot now. Levels come from this snapshot; rates and durations cover the elapsed time
// between the snapshots before and now.
func Rows(before, now []stage.Stats, elapsed time.Duration) []Row {
	rows := make([]Row, len(now))
	worst := -1
	for i, s := range now {
		d := s
		if i < len(before) {
			d = s.Sub(before[i])
		}
		rate := func(n uint64) float64 { return float64(n) / max(elapsed.Seconds(), 1e-9) }
		r := Row{
			Name: s.Name, A: rate(d.Arrived), S: rate(d.Completed),
			Rejected: rate(d.Rejected), Late: rate(d.Late), Failed: rate(d.Failed),
			Waiting: s.Waiting, Busy: s.Busy, Delayed: s.Delayed, Outside: s.Outside, W: s.Width, Queue: s.Queue,
			L: ms(d.Service.Sum / time.Duration(max(d.Service.Count, 1))), L99: ms(d.Service.Quantile(0.99)),
			Wait50: ms(d.Wait.Quantile(0.5)), Wait99: ms(d.Wait.Quantile(0.99)),
			TotalCompleted: s.Completed, TotalArrived: s.Arrived, TotalRejected: s.Rejected, TotalLate: s.Late,
			TotalFailed: s.Failed, TotalCancelled: s.Cancelled, Reason: s.Reason,
		}
		r.Utilisation = r.S * r.L / 1000 / float64(r.W)
		rows[i] = r
		if demand(r) >= 0.8 && (worst < 0 || demand(r) > demand(rows[worst])) {
			worst = i
		}
	}
	if worst >= 0 {
		r := &rows[worst]
		r.Bottleneck = fmt.Sprintf("%s: A×L = %.0f, W = %d: S can be %.0f/s at most", r.Name, r.A*r.L/1000, r.W, float64(r.W)/r.L*1000)
	}
	return rows
}

// demand returns the fraction of the width that the arrivals need.
func demand(r Row) float64 { return r.A * r.L / 1000 / float64(r.W) }

func ms(d time.Duration) float64 { return math.Round(float64(d)/float64(time.Microsecond)) / 1000 }

// Handler returns a handler that shows stages. For the stages of a flow, pass stage.Stages(flow)... A browser gets the page. Other
// clients get text, or JSON if they accept it or request it with ?as=json. Rates cover the time since a snapshot that is at least a
// second old, if there is one, so that simultaneous requests do not shorten this time.
func Handler(stages ...stage.Observed) http.Handler {
	v := &viewer{stages: stages}
	v.before, v.at = v.snapshot(), time.Now()
	return v
}

type viewer struct {
	stages []stage.Observed

	mu           sync.Mutex
	before, last []stage.Stats // v.last is nil, or the first snapshot taken at least a second after v.before
	at, lastAt   time.Time
}

func (v *viewer) snapshot() []stage.Stats {
	all := make([]stage.Stats, len(v.stages))
	for i, s := range v.stages {
		all[i] = s.Stats()
	}
	return all
}

func (v *viewer) rows() []Row {
	now, at := v.snapshot(), time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last != nil && at.Sub(v.lastAt) >= time.Second {
		v.before, v.at, v.last = v.last, v.lastAt, nil
	}
	if v.last == nil && at.Sub(v.at) >= time.Second {
		v.last, v.lastAt = now, at
	}
	return Rows(v.before, now, at.Sub(v.at))
}

// ServeHTTP implements http.Handler.
func (v *viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	accept := r.Header.Get("Accept")
	switch as := r.URL.Query().Get("as"); {
	case as == "json", as == "" && strings.Contains(accept, "application/json"):
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v.rows())
	case as == "" && strings.Contains(accept, "text/html"):
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'")
		_, _ = w.Write(page)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(Text(v.rows())))
	}
}

// Text formats rows as a table.
func Text(rows []Row) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\tA/s\tS/s\trejected/s\tlate/s\tfailed/s\twaiting\tbusy/W\tL ms\tL p99\twait p50\twait p99\tS·L/W\tlast change of W\t")
	bottleneck := ""
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%d/%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t\n", r.Name, r.A, r.S, r.Rejected, r.Late, r.Failed,
			r.Waiting, r.Busy, r.W, r.L, r.L99, r.Wait50, r.Wait99, r.Utilisation, r.Reason)
		bottleneck = cmp.Or(bottleneck, r.Bottleneck)
	}
	_ = t.Flush()
	if bottleneck != "" {
		fmt.Fprintf(&b, "\nbottleneck: %s\n", bottleneck)
	}
	return b.String()
}
