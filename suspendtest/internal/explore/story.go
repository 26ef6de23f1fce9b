package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

func (w *World) event(t *task, format string, args ...any) {
	w.eventAt(runtime.Frame{}, t, format, args...)
}

func (w *World) eventAt(where runtime.Frame, t *task, format string, args ...any) {
	if w.e.tracing && !w.dead {
		w.trace = append(w.trace, event{t, fmt.Sprintf(format, args...), where})
		w.e.countStep()
	}
}

// wide limits the width of the columns of a story. A longer event does not widen its column.
const wide = 32

// long is the number of lines that are kept at the beginning and at the end of a long story.
const long = 100

// story returns the trace of the run with one event per line. Each task has a column, and the source line follows the columns.
func (w *World) story() (lines []string) {
	var tasks []*task
	var widths []int
	for _, e := range w.trace {
		if e.t == nil {
			continue
		}
		i := slices.Index(tasks, e.t)
		if i < 0 {
			i = len(tasks)
			tasks, widths = append(tasks, e.t), append(widths, length(e.t.name))
		}
		if n := length(e.what); n <= wide {
			widths[i] = max(widths[i], n)
		}
	}
	head, all := "", 0
	for i, t := range tasks {
		head = pad(head, all) + t.name
		widths[i], all = all, all+widths[i]+2
	}
	lines = append(lines, head)
	sources := map[string][]string{}
	for _, e := range w.trace {
		line := e.what
		if i := slices.Index(tasks, e.t); i >= 0 {
			line = pad("", widths[i]) + line
		}
		if e.where.File != "" {
			line = pad(line, max(all, length(line)+2)) + site(e.where) + source(sources, e.where)
		}
		lines = append(lines, line)
	}
	if n := len(lines) - 2*long; n > 0 { // a run of this length is usually a livelock
		lines = slices.Concat(lines[:long], []string{fmt.Sprintf("… %d lines …", n)}, lines[len(lines)-long:])
	}
	return lines
}

// source returns a colon and the source line of f, or an empty string if the source file cannot be read.
func source(known map[string][]string, f runtime.Frame) string {
	lines, ok := known[f.File]
	if !ok {
		text, _ := os.ReadFile(filepath.Clean(f.File)) // tests usually run on a machine that has their source
		lines = strings.Split(string(text), "\n")
		known[f.File] = lines
	}
	if f.Line > len(lines) {
		return ""
	}
	return ": " + strings.TrimSpace(lines[f.Line-1])
}

func length(s string) int { return utf8.RuneCountInString(s) }

func pad(s string, to int) string { return s + strings.Repeat(" ", max(0, to-length(s))) }
