package census

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("census").Parse(pageText))

// Handler returns a handler that calls Take for each request. A browser receives a self-contained page. Other clients
// receive text, or the Snapshot as JSON if they accept JSON. The queries ?as=text and ?as=json select a format explicitly.
// Like net/http/pprof, the handler shows lines of the program, so it must not be accessible to the public. While the census
// is off, the handler reports only that it is off.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	s := Take()
	accept, as, h := r.Header.Get("Accept"), r.URL.Query().Get("as"), w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case as == "json", as == "" && strings.Contains(accept, "application/json"):
		h.Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s)
	case as == "" && strings.Contains(accept, "text/html"):
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Vary", "Accept")
		_ = page.Execute(w, s.view())
	default:
		h.Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, s.String())
	}
}

// A view contains the texts of a Snapshot for the page.
type view struct {
	Title     string
	Deadlocks []deadlockView
	Waiting   []groupView
	Others    []taskView
	Scopes    []branchView
}

type branchView struct {
	Title   string
	Members []string
	Inner   []branchView
}

type deadlockView struct {
	Title string
	Lines []linkView
}

type linkView struct{ Waits, Because string }

type groupView struct {
	N                               int
	Of, Operation, At, Since, Stack string
	Details                         []string
}

type taskView struct {
	Title   string
	Details []string
}

func (s Snapshot) view() (v view) {
	v.Title = s.title()
	for _, d := range s.Deadlocks {
		x := deadlockView{Title: d.title()}
		for _, l := range d.Cycle {
			x.Lines = append(x.Lines, linkView{l.waitText(s.At), l.because(s.At)})
		}
		v.Deadlocks = append(v.Deadlocks, x)
	}
	for _, g := range s.groups() {
		wait := g.tasks[0].Waits
		var stack strings.Builder
		for _, f := range wait.Stack {
			fmt.Fprintf(&stack, "%s\n\t%s:%d\n", f.Func, f.File, f.Line)
		}
		v.Waiting = append(v.Waiting, groupView{
			N: len(g.tasks), Of: g.tasksText(), Operation: wait.Operation, At: wait.At.String(), Since: ago(s.At, wait.Since),
			Stack: stack.String(), Details: s.details(g),
		})
	}
	for _, t := range s.others() {
		x := taskView{Title: t.title(s.At)}
		for _, h := range t.Holds {
			x.Details = append(x.Details, h.text(s.At))
		}
		v.Others = append(v.Others, x)
	}
	v.Scopes = branchViews(s.tree(), s.At)
	return v
}

func branchViews(tree []branch, at time.Time) (all []branchView) {
	for _, b := range tree {
		all = append(all, branchView{b.title(at), b.lines(at), branchViews(b.inner, at)})
	}
	return all
}
