package seeds

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"time"
)

// A diagram shows the story of a run, its messages and faults, in space and time (Lamport, 1978). A node is a vertical line, a message is
// an arrow, and a fault is a band. Each event has its own row, so the distance between two rows does not show the time between them.

const (
	rowHeight  = 18
	colWidth   = 90
	leftMargin = 190 // the x coordinate of the first node's line
)

// A picture is a diagram under construction.
type picture struct {
	strings.Builder
	record *Record
	rows   []row
}

// A row shows a scene, or the arrival of the scene's message.
type row struct {
	Scene
	arrives bool
}

// sortKey returns a sort key, 0 for an arrival and 1 for a scene, so that an arrival precedes a scene that it may have caused.
func sortKey(r row) int {
	if r.arrives {
		return 0
	}
	return 1
}

func (p *picture) x(node string) int {
	return leftMargin + colWidth*max(0, slices.Index(p.record.named, node))
}

func (p *picture) y(i int) int { return 60 + rowHeight*i }

// diagram returns the diagram of a run as SVG.
func (r Result) diagram(title string) string {
	v := r.Record
	p := &picture{record: v}
	for _, s := range v.scenes() {
		p.rows = append(p.rows, row{Scene: s})
	}
	for _, s := range slices.Clone(p.rows) {
		if s.Message != nil && s.Message.there {
			s.arrives, s.At, s.order = true, s.Message.arrived, s.Message.before
			p.rows = append(p.rows, s)
		}
	}
	slices.SortStableFunc(p.rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.At, b.At), a.order-b.order, sortKey(a)-sortKey(b)) })
	width, end := leftMargin+colWidth*len(v.named)+900, p.y(len(p.rows)+1)
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"><title>%s</title><style>%s</style><rect width="100%%" height="100%%" fill="#fff"/>`,
		width, end+40, title, style)
	for _, b := range v.bands {
		p.band(b)
	}
	for i, name := range v.named {
		x := leftMargin + colWidth*i
		fmt.Fprintf(p, "\n"+`<line class="node" x1="%d" y1="40" x2="%d" y2="%d"/><text class="name" x="%d" y="28">%s</text>`, x, x, end, x, escaped(name))
	}
	for i, s := range p.rows {
		p.row(i, s)
	}
	fmt.Fprintf(p, "\n"+`<text class="end" x="10" y="%d">%s: %s</text></svg>`+"\n", end+20, title, escaped(Verdict(r.Err)))
	return p.String()
}

const style = `
text { font: 12px sans-serif } .name { font-weight: bold; text-anchor: middle } .time { fill: #777 } .end { font-weight: bold }
.node { stroke: #999 } .message { stroke: #36c } .lost { stroke: #c33; stroke-dasharray: 4 3 } circle, .head { fill: #36c }
.band { fill: #c33; fill-opacity: .25 } .link { fill: #e90; fill-opacity: .35 } .label { fill: #933; font-size: 11px } .cross { stroke: #c33; stroke-width: 2 }`

const shown = 120 // characters of a text

// escaped returns the beginning of text, escaped for XML.
func escaped(text string) string {
	if r := []rune(text); len(r) > shown {
		text = string(r[:shown]) + "…"
	}
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
}

// band draws a fault on the line of its node, or between the lines of its link's two nodes.
func (p *picture) band(b *band) {
	from, to := p.y(p.rowAt(b.from, b.at)), p.y(len(p.rows))
	if b.to >= 0 {
		to = max(from+4, p.y(p.rowAt(b.to, b.until)))
	}
	x, class, what := p.x(b.of), "band", b.of+" is "+b.what
	switch {
	case b.with != "":
		x, class, what = (x+p.x(b.with))/2, "link", fmt.Sprintf("%s–%s: %s", b.of, b.with, b.what)
	case strings.Contains(b.what, " "):
		what = b.of + ": " + b.what
	}
	fmt.Fprintf(p, "\n"+`<rect class="%s" x="%d" y="%d" width="12" height="%d"><title>%s</title></rect><text class="label" x="%d" y="%d">%s</text>`,
		class, x-6, from, to-from, escaped(what), x+9, from+11, escaped(b.what))
}

// rowAt returns the index of the row that shows the n'th scene of the story, or the next scene that has a row.
func (p *picture) rowAt(at time.Duration, n int) int {
	i := slices.IndexFunc(p.rows, func(r row) bool { return r.At > at || r.At == at && r.order >= n && !r.arrives })
	if i < 0 {
		return len(p.rows)
	}
	return i
}

func (p *picture) row(i int, s row) {
	y := p.y(i)
	if s.arrives {
		return
	}
	fmt.Fprintf(p, "\n"+`<text class="time" x="10" y="%d">%d</text><text class="time" x="70" y="%d">%v</text>`, y+4, s.Step, y+4, s.At)
	if s.Message != nil {
		p.arrow(i, s)
	}
	for _, node := range s.Crosses {
		x := p.x(node)
		fmt.Fprintf(p, `<path class="cross" d="M%d %d l8 8 m-8 0 l8 -8"/>`, x-4, y-4)
	}
	fmt.Fprintf(p, `<text x="%d" y="%d">%s</text>`, leftMargin+colWidth*len(p.record.named), y+4, escaped(s.describe()))
}

// arrow draws the message in the i'th row, from its sender to its arrival.
func (p *picture) arrow(i int, s row) {
	y, class := p.y(i), "message"
	from, to, there := p.x(s.Message.From), p.x(s.To), y+rowHeight
	if !s.Message.there {
		class, to = "message lost", (from+to)/2
	} else {
		there = p.y(i + slices.IndexFunc(p.rows[i:], func(r row) bool { return r.arrives && r.Message == s.Message }))
	}
	fmt.Fprintf(p, `<circle cx="%d" cy="%d" r="3"/><line class="%s" x1="%d" y1="%d" x2="%d" y2="%d"><title>%s</title></line>`,
		from, y, class, from, y, to, there, escaped(s.describe()))
	if s.Message.there {
		side := 7
		if to > from {
			side = -7
		}
		fmt.Fprintf(p, `<path class="head" d="M%d %d l%d -5 l0 7 z"/>`, to, there, side)
	}
}

// draw writes the diagram of a run to a file, and returns a line that names the file.
func (r Result) draw(file, run string) string {
	if err := os.WriteFile(file, []byte(r.diagram("seed "+run)), 0o644); err != nil {
		return fmt.Sprintf("\nIts diagram was not written: %v\n", err)
	}
	return "\nIts diagram is " + file + "\n"
}
