//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/widget"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
)

// mode is set in the process that TestWithoutMigration starts.
var mode = os.Getenv("BRAID_GUI")

var window fyne.Window

// Fyne's loop needs the main goroutine, so the tests run on another one.
func TestMain(m *testing.M) {
	app.SetMetadata(fyne.AppMetadata{ID: "com.github.braidgo.gui", Migrations: map[string]bool{"fyneDo": mode == ""}})
	a := app.New()
	window = a.NewWindow("test")
	window.Show()
	code := make(chan int, 1)
	a.Lifecycle().SetOnStarted(func() {
		go func() {
			code <- m.Run()
			fyne.Do(a.Quit)
		}()
	})
	time.AfterFunc(4*time.Minute, func() { panic("the tests hang") })
	a.Run()
	os.Exit(<-code)
}

func goroutine() string {
	stack := make([]byte, 64)
	return strings.Fields(string(stack[:runtime.Stack(stack, false)]))[1]
}

// onMain runs f on Fyne's goroutine, like a click.
func onMain(f func()) { fyne.DoAndWait(f) }

// A task runs on Fyne's thread, but not on Fyne's goroutine.
func TestIdentity(t *testing.T) {
	tasks := callback.New(fyneLoop{}, callback.Options{})
	defer tasks.Close()
	var mainThread, taskThread, executorThread int
	var mainID, taskID, executorID string
	onMain(func() { mainThread, mainID = syscall.Gettid(), goroutine() })
	done := make(chan error, 1)
	_ = tasks.Go(func() {
		taskThread, taskID = syscall.Gettid(), goroutine()
		done <- tasks.OnExecutor(t.Context(), func() { executorThread, executorID = syscall.Gettid(), goroutine() })
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Log("goroutines: Fyne", mainID, "task", taskID, "OnExecutor", executorID)
	if taskThread != mainThread || executorThread != mainThread {
		t.Error("threads", mainThread, taskThread, executorThread)
	}
	if taskID == mainID || executorID != mainID {
		t.Error("goroutines", mainID, taskID, executorID)
	}
}

type fixture struct {
	*page
	t *testing.T
}

func open(t *testing.T) (f fixture, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	tasks := callback.New(fyneLoop{}, callback.Options{})
	pool := workstealing.New(workstealing.Options{Workers: 1})
	onMain(func() { f = fixture{newPage(ctx, window, tasks, pool), t} })
	return f, func() {
		cancel()
		if err := errors.Join(tasks.Close(), pool.Close()); err != nil {
			t.Error(err)
		}
	}
}

// click enters n and clicks. It returns a function that waits for the end of the task.
func (f fixture) click(n string) (end func() error) {
	f.t.Helper()
	onMain(func() {
		f.input.SetText(n)
		f.button.OnTapped()
		last := f.last
		end = func() error {
			_, err := last.Await(f.t.Context())
			return err
		}
	})
	return end
}

func (f fixture) shown() (text string) {
	onMain(func() { text = f.result.Text })
	return text
}

// until calls look on Fyne's goroutine until look returns true. Each call shows that the window still responds.
func until(t *testing.T, what string, look func() bool) {
	t.Helper()
	for ok := false; !ok; {
		if t.Context().Err() != nil {
			t.Fatal("never ", what)
		}
		onMain(func() { ok = look() })
	}
}

func TestCompute(t *testing.T) {
	f, stop := open(t)
	defer stop()
	release := make(chan struct{})
	_ = f.pool.Go(func() { <-release }) // keeps the only worker busy
	end := f.click("20")
	until(t, "waiting", func() bool { return f.tasks.Stats().Suspended == 1 })
	if got := f.shown(); got != "computing" {
		t.Error(got)
	}
	close(release)
	if err := end(); err != nil || f.shown() != "6765" {
		t.Error(err, f.shown())
	}
	if err := f.click("many")(); err == nil || f.shown() != "not a number" {
		t.Error(err, f.shown())
	}
}

func TestQuestion(t *testing.T) {
	f, stop := open(t)
	defer stop()
	asked := func() { until(t, "asked", func() bool { return f.question != nil }) }
	end := f.click("36")
	asked()
	onMain(func() { f.question.Confirm() })
	if err := end(); err != nil || f.shown() != "14930352" {
		t.Error(err, f.shown())
	}
	onMain(func() { f.result.SetText("") })
	end = f.click("36")
	asked()
	onMain(func() { f.question.Dismiss() })
	if err := end(); err != nil || f.shown() != "" {
		t.Error(err, f.shown())
	}
	first := f.click("36")
	asked()
	second := f.click("10") // ends the first task, and its question
	if err := first(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := second(); err != nil || f.shown() != "55" {
		t.Error(err, f.shown())
	}
}

// Closing the window ends a task that waits for an answer.
func TestStop(t *testing.T) {
	f, stop := open(t)
	end := f.click("36")
	until(t, "asked", func() bool { return f.question != nil })
	stop()
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Without the migration, a task that calls a widget hangs, and StallAfter reports it. OnExecutor works.
func TestWithoutMigration(t *testing.T) {
	if mode != "" {
		unmigrated(t)
		return
	}
	for _, mode := range []string{"direct", "executor"} {
		c := exec.Command(os.Args[0], "-test.run=TestWithoutMigration")
		c.Env = append(os.Environ(), "BRAID_GUI="+mode)
		out, _ := c.CombinedOutput()
		t.Logf("%s:\n%s", mode, out)
		code := c.ProcessState.ExitCode()
		if hangs := code == 3; hangs != (mode == "direct") || !hangs && code != 0 {
			t.Errorf("%s: exit status %d", mode, code)
		}
	}
}

func unmigrated(t *testing.T) {
	var label *widget.Label
	onMain(func() { label = widget.NewLabel(""); window.SetContent(label) })
	tasks := callback.New(fyneLoop{}, callback.Options{StallAfter: 100 * time.Millisecond, OnStall: func(report []byte) {
		fmt.Printf("%s\n", report)
		if bytes.Contains(report, []byte("a native wait")) && bytes.Contains(report, []byte("SetText")) { // not a report of a busy machine
			os.Exit(3)
		}
	}})
	done := make(chan error, 1)
	_ = tasks.Go(func() {
		if mode == "direct" {
			label.SetText("set") // Fyne sees another goroutine, and waits for its own
			done <- nil
		} else {
			done <- tasks.OnExecutor(t.Context(), func() { label.SetText("set") })
		}
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
	onMain(func() {
		if label.Text != "set" {
			t.Error(label.Text)
		}
	})
}
