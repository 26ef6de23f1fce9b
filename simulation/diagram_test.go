package simulation_test

import (
	"context"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// TestDrawn fails after one fault of each kind. TestDiagram runs it in another process.
func TestDrawn(t *testing.T) {
	if os.Getenv("BRAID_DIAGRAM") == "" {
		return // see TestDiagram
	}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: time.Millisecond})
		a, b, link := w.Node("a"), w.Node("b<&>"), w.Link("a", "b<&>")
		ln, err := a.Listen("tcp", ":1")
		if err != nil {
			return err
		}
		_ = a.Go(func() {
			c, err := ln.Accept()
			for p := make([]byte, 8); err == nil; {
				if _, err = c.Read(p); err == nil {
					_, err = c.Write([]byte("pong"))
				}
			}
		})
		done := false
		_ = b.Go(func() {
			c, err := b.Dial(ctx, "tcp", "a:1")
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("ping"))
			_, _ = c.Read(make([]byte, 8))
			link.Hold()
			_, _ = c.Write([]byte("held"))
			_ = suspend.Sleep(ctx, time.Second)
			link.Heal()
			_, _ = c.Read(make([]byte, 8))
			link.Cut()
			link.Heal()
			a.Pause()
			a.Resume()
			a.SlowDisk(1)
			a.SlowDisk(0)
			a.FullDisk(true)
			a.FullDisk(false)
			a.Skew(1, 1)
			a.Skew(0, 1)
			a.PowerOff()
			done = true
		})
		for !done {
			_ = suspend.Sleep(ctx, time.Second)
		}
		a.Restart(func(context.Context) {})
		b.Crash()
		w.Log("a line with \x00 and \xff")
		return errors.New("it fails")
	}, simulation.TestOptions{})
}

// drawn is an element of a diagram.
type drawn struct {
	Class string `xml:"class,attr"`
	Y1    int    `xml:"y1,attr"`
	Y2    int    `xml:"y2,attr"`
	Y     int    `xml:"y,attr"`
	Title string `xml:"title"`
	High  string `xml:"height,attr"`
	Text  string `xml:",chardata"`
}

// draw returns the file of a diagram.
func draw(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "x.svg")
	c := exec.Command(os.Args[0], "-test.run=^TestDrawn$")
	c.Env = append(os.Environ(), "BRAID_DIAGRAM="+file)
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "Its diagram is "+file)
	require.Contains(t, string(out), "The end of its trace:")
	return file
}

// A diagram has a line for each node, a downward arrow for each message, and a band for each fault, with its end.
func TestDiagram(t *testing.T) {
	text, err := os.ReadFile(draw(t))
	require.NoError(t, err)
	var all struct {
		Line []drawn `xml:"line"`
		Rect []drawn `xml:"rect"`
		Text []drawn `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(text, &all), "%s", text)
	nodes, bands, rows := 0, map[string]string{}, map[string]int{}
	for _, x := range all.Text {
		rows[x.Text] = x.Y
	}
	var arrows []drawn
	for _, x := range all.Line {
		switch x.Class {
		case "node":
			nodes++
		case "message":
			require.Greater(t, x.Y2, x.Y1, x.Title)
			arrows = append(arrows, x)
		}
	}
	require.Equal(t, 2, nodes)
	require.Len(t, arrows, 4)
	for i, next := range arrows[1:] { // each message is sent after the last one has arrived
		require.LessOrEqual(t, arrows[i].Y2, next.Y1, next.Title)
	}
	for _, x := range all.Rect {
		bands[x.Title] = x.High
	}
	for _, what := range []string{
		"a–b<&>: on hold", "a–b<&>: cut", "a is paused", "a: slow disk", "a: full disk", "a: wrong clock", "a: without power", "b<&> is crashed",
	} {
		require.Contains(t, bands, what)
	}
	require.Equal(t, "4", bands["a is paused"], "it has an end")
	require.Equal(t, "36", bands["a–b<&>: cut"], "two ends of a connection break meanwhile")
	require.NotEqual(t, "4", bands["a–b<&>: on hold"])
	require.Contains(t, rows, "main: a line with   and ?")
}
