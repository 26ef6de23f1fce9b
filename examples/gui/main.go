// Gui opens a Fyne window whose event handlers are tasks. The button's handler shows a question, computes on a pool and shows the result,
// all in straight-line code. The window stays responsive while the handler waits.
//
//	cd examples/gui && go run .                    # needs a C compiler and the development files of X11 and OpenGL
//	cd examples/gui && xvfb-run -a go test .       # without a display
package main

import (
	"context"
	"strconv"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/widget"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
)

// fyneLoop adapts Fyne's event loop to suspend.Executor.
type fyneLoop struct{}

func (fyneLoop) Execute(f func()) error { fyne.Do(f); return nil }

// A page is the content of the window. Its fields need no lock, because only Fyne's thread accesses them.
type page struct {
	ctx    context.Context
	tasks  *callback.Loop // runs tasks on Fyne's thread
	pool   *workstealing.Pool
	window fyne.Window

	input    *widget.Entry
	button   *widget.Button
	result   *widget.Label
	question *dialog.ConfirmDialog // the question on screen, or nil
	last     *promise.Promise[struct{}]
	stopLast context.CancelFunc
}

func newPage(ctx context.Context, w fyne.Window, tasks *callback.Loop, pool *workstealing.Pool) *page {
	p := &page{ctx: ctx, tasks: tasks, pool: pool, window: w, stopLast: func() {}}
	p.input, p.result = widget.NewEntry(), widget.NewLabel("")
	p.input.SetText("40")
	p.button = widget.NewButton("Compute", p.clicked)
	w.SetContent(container.NewVBox(p.input, p.button, p.result))
	return p
}

// clicked starts a computation. A second click cancels the first computation.
func (p *page) clicked() {
	p.stopLast()
	ctx, stop := context.WithCancel(p.ctx)
	p.stopLast = stop
	p.last = promise.Go(ctx, p.tasks, p.compute)
}

// compute runs as a task on Fyne's thread.
func (p *page) compute(ctx context.Context) (none struct{}, err error) {
	n, err := strconv.Atoi(p.input.Text)
	if err != nil {
		p.result.SetText("not a number")
		return none, err
	}
	if n > 35 {
		sure, err := p.confirm(ctx, "This takes a moment. Go on?") // the task waits for a click
		if err != nil || !sure {
			return none, err
		}
	}
	p.result.SetText("computing")
	v, err := promise.Go(ctx, p.pool, func(ctx context.Context) (int, error) { return fib(ctx, n) }).Await(ctx)
	if err == nil {
		p.result.SetText(strconv.Itoa(v))
	}
	return none, err
}

// confirm shows a question, and suspends the calling task until the user answers.
func (p *page) confirm(ctx context.Context, question string) (bool, error) {
	answer := promise.New[bool]()
	d := dialog.NewConfirm("Fibonacci", question, func(sure bool) { answer.Fill(sure) }, p.window)
	p.question = d
	d.Show()
	sure, err := answer.Await(ctx)
	if err != nil {
		d.Hide() // ctx ended first
	}
	if p.question == d {
		p.question = nil
	}
	return sure, err
}

func fib(ctx context.Context, n int) (int, error) {
	if n < 2 {
		return n, nil
	}
	if n > 20 && ctx.Err() != nil {
		return 0, ctx.Err()
	}
	a, err := fib(ctx, n-1)
	if err != nil {
		return 0, err
	}
	b, err := fib(ctx, n-2)
	return a + b, err
}

func main() {
	// Without this entry, Fyne rejects calls from tasks, because Fyne compares goroutine ids.
	app.SetMetadata(fyne.AppMetadata{ID: "com.github.braidgo.gui", Migrations: map[string]bool{"fyneDo": true}})
	a := app.New()
	ctx, cancel := context.WithCancel(context.Background())
	tasks := callback.New(fyneLoop{}, callback.Options{})
	pool := workstealing.New(workstealing.Options{})
	w := a.NewWindow("Braid")
	newPage(ctx, w, tasks, pool)
	w.SetCloseIntercept(func() {
		cancel()
		go func() { // Close waits for tasks on this thread, so it must not block the thread
			_ = tasks.Close()
			_ = pool.Close()
			fyne.Do(a.Quit)
		}()
	})
	w.ShowAndRun()
}
