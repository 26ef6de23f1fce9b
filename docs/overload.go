package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strconv"
)

// A plot maps loads and fractions to a picture. Its origin is the load 0 and the fraction 0.
type plot struct{ picture }

func (plot) x(load float64) float64     { return 70 + load*52 }
func (plot) y(fraction float64) float64 { return 270 - fraction*200 }

// drawOverload draws two of the series that bench has measured: the servers of examples/overload.
func drawOverload(w io.Writer) error {
	f, err := os.Open("../bench/results/stage-overload-good.csv")
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return err
	}
	p := plot{picture{w}}
	p.begin(640, 330, "With a stage a server answers as many clients as it can, at any load; with a goroutine for each request it answers none")
	p.printf(`<style>.plot text{font-size:15px}.grid{stroke:#7b8794;stroke-opacity:.3}.stage{stroke:#0072b2;fill:#0072b2}.go{stroke:#d55e00;fill:#d55e00}` +
		`.stage,.go{stroke-width:3}polyline.stage,polyline.go{fill:none}.plot text.stage,.plot text.go{stroke:none;font-weight:bold}` +
		`@media(prefers-color-scheme:dark){.stage{stroke:#56b4e9;fill:#56b4e9}.go{stroke:#e69f00;fill:#e69f00}}</style>`)
	p.printf(`<g class="plot">`)
	for _, at := range []float64{0, 0.5, 1} {
		p.printf(`<line x1="%g" y1="%g" x2="%g" y2="%g" class="grid"/>`, p.x(0), p.y(at), p.x(10.4), p.y(at))
		p.printf(`<text x="%g" y="%g" text-anchor="end">%g</text>`, p.x(0)-8, p.y(at)+5, at)
	}
	for _, at := range []float64{1, 2, 3, 5, 7, 10} {
		p.printf(`<text x="%g" y="%g" text-anchor="middle">%g</text>`, p.x(at), p.y(0)+22, at)
	}
	p.text(20, 26, "start", `class="name"`, "Answers in time, as a fraction of what the server can do")
	p.text(330, 316, "middle", "", "load, as a multiple of what the server can do")
	for _, s := range []struct {
		name, class, label string
		x, y               int
	}{
		{"stage, Queue 160, Delay 5ms", "stage", "a stage", 330, 60},
		{"goroutine per request, semaphore with ctx", "go", "a goroutine for each request, and a semaphore", 170, 255},
	} {
		points := ""
		for _, row := range rows[1:] {
			load, err := strconv.ParseFloat(row[1], 64)
			if err != nil {
				return err
			}
			good, err := strconv.ParseFloat(row[2], 64)
			if err != nil {
				return err
			}
			if row[0] == s.name {
				points += fmt.Sprintf("%.1f,%.1f ", p.x(load), p.y(good))
				p.printf(`<circle cx="%.1f" cy="%.1f" r="3" class="%s"/>`, p.x(load), p.y(good), s.class)
			}
		}
		if points == "" {
			return fmt.Errorf("no results of %q", s.name)
		}
		p.printf(`<polyline points="%s" class="%s"/>`, points, s.class)
		p.text(s.x, s.y, "start", `class="`+s.class+`"`, s.label)
	}
	p.printf(`</g></svg>`)
	return nil
}
