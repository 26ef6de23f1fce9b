// Docs draws the pictures in README.md and docs/choosing.md.
//
//	go run ./docs
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// pictures maps the name of each file to the function that draws it.
var pictures = map[string]func(io.Writer) error{"meeting.svg": drawMeeting, "hang.svg": drawHang, "overload.svg": drawOverload}

func main() {
	if err := drawAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func drawAll() error {
	if err := os.Chdir("docs"); err != nil {
		return err
	}
	for name, draw := range pictures {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			return err
		}
		if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

const width, height = 920, 372

// styles holds the fonts, and the colours on a light and on a dark page.
const styles = `text{font-family:Helvetica,Arial,sans-serif;fill:#1f2933}.name{font-size:15px;font-weight:bold}.task{font-size:13px}` +
	`.note{font-size:12px;fill:#7b8794}.code{font-family:Menlo,Consolas,monospace;font-size:13px}` +
	`.paper{fill:#fff}.line{stroke:#1f2933}.tip{fill:#1f2933}` +
	`.running{fill:#d9f2e3}.waiting{fill:#fde8c8}.meeting{fill:#dbe9fb}.stuck{fill:#f9d4d4}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9aa4af}` +
	`.paper{fill:#0d1117}.line{stroke:#9aa4af}.tip{fill:#9aa4af}` +
	`.running{fill:#1f4a33}.waiting{fill:#5a4218}.meeting{fill:#1e3f66}.stuck{fill:#66282b}}`

// The classes of boxes.
const (
	paper   = "paper"
	running = "running"
	waiting = "waiting"
	meeting = "meeting"
	stuck   = "stuck"
)

// A picture writes an SVG image to w.
type picture struct{ w io.Writer }

func (p picture) printf(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p picture) box(x, y, w, h int, class, dash string) {
	p.printf(`<rect x="%d" y="%d" width="%d" height="%d" rx="6" class="line %s" stroke-width="1.2"%s/>`, x, y, w, h, class, dash)
}

func (p picture) text(x, y int, anchor, style, text string) {
	p.printf(`<text x="%d" y="%d" text-anchor="%s" %s>%s</text>`, x, y, anchor, style, text)
}

func (p picture) arrow(x1, y1, x2, y2 int, label string, lx, ly int) {
	p.printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="line" stroke-width="1.6" marker-end="url(#tip)"/>`, x1, y1, x2, y2)
	p.text(lx, ly, "middle", `class="code"`, label)
}

// A task is a row in the box of a scheduler.
type task struct{ name, state, class string }

// island draws a scheduler as a box with a row for each task.
func (p picture) island(x, y int, name, thread string, tasks ...task) {
	const w, row = 250, 32
	h := 44 + row*len(tasks)
	p.box(x, y, w, h, paper, ` stroke-dasharray="5 4"`)
	p.text(x+12, y+20, "start", `class="name"`, name)
	p.text(x+w-12, y+20, "end", `class="note"`, thread)
	for i, t := range tasks {
		top := y + 32 + row*i
		p.box(x+12, top, w-24, row-6, t.class, "")
		p.text(x+22, top+17, "start", `class="task"`, t.name)
		p.text(x+w-22, top+17, "end", `class="note"`, t.state)
	}
}

// begin writes the size of a picture, its label for screen readers, and its styles.
func (p picture) begin(width, height int, label string) {
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, width, height, label)
	p.printf(`<style>%s</style>`, styles)
	p.printf(`<rect width="%d" height="%d" class="paper"/>`, width, height)
}

func drawMeeting(w io.Writer) error {
	p := picture{w}
	p.begin(580, 500, "Tasks of three schedulers and a goroutine meet at one MVar")
	p.printf(`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" class="tip"/></marker></defs>`)

	p.island(20, 10, "event loop", "one thread",
		task{"connection 1", "waits in Take", waiting}, task{"connection 2", "runs", running}, task{"connection 3", "waits for its socket", waiting})
	p.island(20, 312, "GUI main thread", "one thread", task{"button handler", "waits in Take", waiting}, task{"repaint", "runs", running})
	p.island(310, 42, "work-stealing pool", "n threads", task{"fib(40)", "runs, then Put", running}, task{"its two halves", "run", running})
	p.island(310, 312, "Go's own scheduler", "", task{"goroutine", "waits in Read", waiting})

	p.box(200, 183, 180, 96, meeting, "")
	p.text(290, 209, "middle", `class="name"`, "MVar")
	p.text(290, 231, "middle", `class="task"`, "one value, or none,")
	p.text(290, 249, "middle", `class="task"`, "and a queue of waiters")
	p.text(290, 267, "middle", `class="note"`, "no lock, no thread is held")

	p.arrow(145, 150, 198, 207, "Take(ctx)", 125, 192)
	p.arrow(145, 312, 198, 255, "Take(ctx)", 125, 282)
	p.arrow(435, 150, 382, 207, "Put(ctx, v)", 463, 192)
	p.arrow(435, 312, 382, 255, "Read(ctx)", 459, 282)

	p.text(20, 444, "start", `class="task"`, "A wait suspends the task and nothing else: its thread runs other tasks.")
	p.text(20, 464, "start", `class="task"`, "If a value and the end of ctx meet in a wait, exactly one wins.")
	p.text(20, 484, "start", `class="task"`, "A Put that meets a cancelled Take keeps its value for the next one.")
	p.printf(`</svg>`)
	return nil
}
