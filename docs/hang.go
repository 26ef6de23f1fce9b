package main

import "io"

// A span is a box in a row of a timeline.
type span struct {
	from, to float64 // seconds
	text     string
	class    string
}

const (
	second = 95  // the width of a second in pixels
	left   = 170 // the x coordinate of time 0
	last   = 7.8 // the end of the timeline in seconds
)

// row draws a row of a timeline. The animated clip path of the picture uncovers the spans over time.
func (p picture) row(y int, name string, spans ...span) {
	p.text(left-12, y+19, "end", `class="note"`, name)
	p.printf(`<g clip-path="url(#now)">`)
	for _, s := range spans {
		p.box(left+int(s.from*second), y, int((s.to-s.from)*second)-4, 28, s.class, "")
		p.text(left+int(s.from*second)+8, y+19, "start", `class="task"`, s.text)
	}
	p.printf(`</g>`)
}

// drawHang draws a timeline for each of the two functions of examples/hang. The picture is animated, but its first frame, and a viewer
// without animation, show the whole timeline.
func drawHang(w io.Writer) error {
	p := picture{w}
	p.begin(width, height-92, "A handler that waits for a Go channel hangs its thread; with Braid the thread goes on")
	p.printf(`<defs><clipPath id="now"><rect x="%d" y="0" width="%d" height="%d"><animate attributeName="width" dur="12s" values="%d;%d;0;%d;%d" keyTimes="0;.3;.3;.9;1" repeatCount="indefinite"/></rect></clipPath></defs>`,
		left-2, width-left, height, width-left, width-left, width-left, width-left)

	p.text(20, 34, "start", `class="name"`, "A Go channel")
	p.text(left, 34, "start", `class="code"`, "onClick := func() { show(&lt;-replies) }")
	p.row(48, "main thread", span{0, 1.5, "onClick runs", running}, span{1.5, last, "hangs: it waits for a reply, which only this thread can send", stuck})
	p.row(82, "in its queue", span{2, last, "onReply, then repaint: they never run", waiting})

	p.text(20, 160, "start", `class="name"`, "Braid")
	p.text(left, 160, "start", `class="code"`, "onClick := func() { s, _ := replies.Recv(ctx); show(s) }")
	p.row(174, "main thread", span{0, 1.5, "onClick runs", running}, span{2, 4, "onReply: Send(ctx, hello)", running},
		span{4, 5.8, "onClick: show(hello)", running}, span{5.8, last, "repaint", running})
	p.row(208, "suspended", span{1.5, 4, "onClick waits, without a thread", waiting})
	p.text(left, 262, "start", `class="task"`, "The same two handlers of a GUI, on its one thread. <tspan class=\"code\">go run ./examples/hang</tspan> runs both.")
	p.printf(`</svg>`)
	return nil
}
