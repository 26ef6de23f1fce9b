package main

import (
	"image/color"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// palette is the colour-blind-safe palette of Okabe and Ito. In each curve, the first series is Braid.
var palette = []color.Color{
	color.NRGBA{0, 114, 178, 255}, color.NRGBA{213, 94, 0, 255}, color.NRGBA{0, 158, 115, 255}, color.NRGBA{204, 121, 167, 255},
	color.NRGBA{86, 180, 233, 255}, color.NRGBA{230, 159, 0, 255}, color.NRGBA{0, 0, 0, 255},
}

// A trail holds the points of one series: the medians, with error bars from the minimum to the maximum.
type trail struct {
	plotter.XYs
	plotter.YErrors
}

// plot draws the curve to a file.
func (r curveResult) plot(file string) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = r.Title, r.X, r.Y
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(11), vg.Points(6)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs, p.Legend.TextStyle.Font.Size = true, true, vg.Points(4), vg.Points(-4), vg.Points(9)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{220}, color.Gray{235}
	p.Add(grid)
	if !r.LogY {
		p.Y.Min = 0
	}
	plotutil.DefaultColors = palette
	var bars []any
	for i, s := range r.Series {
		var t trail
		for _, point := range s.Points {
			if r.LogY && point.Min <= 0 || r.LogX && point.X <= 0 {
				continue // a logarithmic axis cannot show the point, but the table does
			}
			if len(r.Names) > 0 { // points of different series are drawn side by side
				point.X += (float64(i) - float64(len(r.Series)-1)/2) * 0.08
			}
			t.XYs = append(t.XYs, plotter.XY{X: point.X, Y: point.Median})
			t.YErrors = append(t.YErrors, struct{ Low, High float64 }{point.Median - point.Min, point.Max - point.Median})
		}
		if t.Len() == 0 {
			continue
		}
		bars = append(bars, t)
		line, points, err := plotter.NewLinePoints(t)
		ok(err)
		line.Color, line.Dashes, points.Color, points.Shape = palette[i], plotutil.Dashes(i), palette[i], plotutil.Shape(i)
		// Later lines are narrower, so that an earlier line with the same points can be seen on both sides.
		line.Width = vg.Points(1 + 0.9*float64(len(r.Series)-1-i))
		if len(r.Names) > 0 {
			p.Add(points)
			p.Legend.Add(s.Name, points)
		} else {
			p.Add(line, points)
			p.Legend.Add(s.Name, line, points)
		}
	}
	ok(plotutil.AddErrorBars(p, bars...))
	if r.LogY {
		p.Y.Max *= 4 // makes room for the legend
		logarithmic(&p.Y)
	} else {
		p.Y.Max *= 1.25
	}
	switch {
	case len(r.Names) > 0:
		p.NominalX(r.Names...)
		p.X.Min, p.X.Max = -0.5, float64(len(r.Names))-0.5
	case r.LogX:
		logarithmic(&p.X)
	}
	ok(p.Save(6.5*vg.Inch, 4*vg.Inch, file))
	ok(os.WriteFile(file, []byte(finish.Replace(string(must(os.ReadFile(file))))), 0o644))
}

// finish names fonts of other systems that are as wide as the font of the plots, makes the picture wider for systems with neither, and
// inverts the colours on a dark page.
var finish = strings.NewReplacer(
	`<svg width="468pt" height="288pt" viewBox="0 0 468 288"`, `<svg width="490pt" height="288pt" viewBox="0 0 490 288"`,
	"M0,0L468,0L468,288L0,288Z", "M0,0L490,0L490,288L0,288Z",
	"font-family:Liberation Serif;", "font-family:Liberation Serif,Times New Roman,Times,serif;",
	`<g transform="scale(1, -1) translate(0, -288)">`, `<style>@media(prefers-color-scheme:dark){svg{filter:invert(1) hue-rotate(180deg)}}</style>
<g transform="scale(1, -1) translate(0, -288)">`)

// logarithmic makes an axis logarithmic, unless the axis has no points.
func logarithmic(a *plot.Axis) {
	if a.Min > a.Max {
		return
	}
	if a.Max < 10*a.Min { // extends a short axis, because ticks are at powers of ten
		a.Min, a.Max = a.Min/3, a.Max*3
	}
	a.Scale, a.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
}
