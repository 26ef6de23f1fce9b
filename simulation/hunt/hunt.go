// Hunt runs ordinary tests of any Go module in many orders of their goroutines, until one fails. It prints the switches between goroutines that
// the failure needs, and a command that repeats it.
//
//	go run github.com/braidgo/braid/simulation/hunt@latest ./pkg -run TestX -n 10000
//
// A number, the seed, decides the order. Hunt performs each order in a process of its own, with a changed Go runtime (simulation/overlay).
// The module that is tested need not require Braid. README.md describes its limits.
//
// The exit status is 0 if no order failed, 1 if one did, and 2 if a test could not be built or run.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/braidgo/braid/simulation/internal/edited"
)

const usage = `usage: hunt [packages] [flags]

Hunt runs the tests of the packages in many orders of their goroutines. The flags are:

`

// A hunt is a call of the command.
type hunt struct {
	run, skip, tags, how     string
	n, jobs, repeat          int
	first                    uint64
	lasts, limit, stall      time.Duration
	shorten                  time.Duration
	short, race, asJSON, all bool
	packages                 []string

	out, log io.Writer
	g        *edited.Go
	dir      string // the binaries are in it
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command performs a hunt and returns the exit status.
func command(ctx context.Context, args []string, out, log io.Writer) int {
	h := &hunt{out: out, log: log}
	if err := h.parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(log, "hunt:", err)
		}
		return 2
	}
	found, err := h.work(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(log, "hunt:", err)
		return 2
	case found:
		return 1
	}
	return 0
}

// parse reads the arguments. Flags may come before and after the packages.
func (h *hunt) parse(args []string) error {
	f := flag.NewFlagSet("hunt", flag.ContinueOnError)
	f.SetOutput(h.log)
	f.Usage = func() {
		fmt.Fprint(h.log, usage)
		f.PrintDefaults()
	}
	f.StringVar(&h.run, "run", "", "run only the tests that match this `pattern`, as with go test")
	f.StringVar(&h.skip, "skip", "", "do not run the tests that match this `pattern`")
	f.IntVar(&h.n, "n", 1000, "the number of orders for each package")
	f.DurationVar(&h.lasts, "for", 0, "try orders for this time, instead of -n")
	f.IntVar(&h.jobs, "jobs", runtime.NumCPU(), "the number of processes at a time")
	f.Uint64Var(&h.first, "seed", 1, "the first seed")
	f.StringVar(&h.how, "strategy", "swarm", "yields, delays, levels, or swarm: each seed chooses one")
	f.DurationVar(&h.stall, "stall", 0, "pause goroutines for up to this time, as on an overloaded machine; finds tests that rely on sleeps")
	f.BoolVar(&h.all, "all", false, "continue after a failure, and report each further failing test and line once")
	f.IntVar(&h.repeat, "repeat", 5, "how often to repeat an order that fails")
	f.DurationVar(&h.shorten, "shorten", time.Minute, "search for this time for the switches that a failure needs")
	f.DurationVar(&h.limit, "limit", time.Minute, "the real time that an order may take")
	f.BoolVar(&h.race, "race", false, "run a failing order with the race detector, too, to tell whether it has a data race (needs a C compiler)")
	f.BoolVar(&h.short, "short", false, "as with go test")
	f.StringVar(&h.tags, "tags", "", "build `tags`")
	f.BoolVar(&h.asJSON, "json", false, "print each failure as a line of JSON")
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return err
		}
		if args = f.Args(); len(args) > 0 {
			h.packages, args = append(h.packages, args[0]), args[1:]
		}
	}
	if len(h.packages) == 0 {
		h.packages = []string{"."}
	}
	letter, ok := map[string]string{"swarm": "", "yields": "y", "delays": "d", "levels": "l"}[h.how]
	switch {
	case !ok:
		return fmt.Errorf("-strategy=%s is not one of yields, delays, levels and swarm", h.how)
	case h.n <= 0 || h.jobs <= 0 || h.repeat <= 0:
		return errors.New("-n, -jobs and -repeat must be positive")
	case h.stall != 0 && h.stall < time.Millisecond:
		return errors.New("-stall must be at least a millisecond")
	}
	if h.how = letter; h.stall != 0 {
		h.how += fmt.Sprint("+", h.stall.Milliseconds())
	}
	switch runtime.GOOS {
	case "darwin", "dragonfly", "freebsd", "linux", "netbsd", "openbsd":
		return nil
	}
	return errors.New("orders need a Unix system: the runtime reads BRAID_ORDER before anything else")
}

// A pkg is a package with tests.
type pkg struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string
	Module                    *struct{ Dir string }

	binary string
}

// work hunts in all packages, and reports whether it has found a failure.
func (h *hunt) work(ctx context.Context) (found bool, err error) {
	if h.g, err = edited.Overlay(""); err != nil {
		return false, err
	}
	if h.dir, err = os.MkdirTemp("", "hunt"); err != nil {
		return false, err
	}
	defer os.RemoveAll(h.dir)
	pkgs, err := h.list(ctx)
	if err != nil {
		return false, err
	}
	var problems []error
	for _, p := range pkgs {
		if ctx.Err() != nil {
			break
		}
		n, err := h.inPackage(ctx, p)
		found = found || n > 0
		if err != nil {
			problems = append(problems, err)
		}
	}
	return found, errors.Join(problems...)
}

// list returns the packages with tests.
func (h *hunt) list(ctx context.Context) (all []*pkg, err error) {
	out, err := h.goCommand(ctx, "", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Module", "-tags=" + h.tags, "--"}, h.packages...)...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := d.Decode(p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no package of %s has tests", strings.Join(h.packages, " "))
	}
	return all, nil
}

// goCommand runs the go command and returns what it has printed.
func (h *hunt) goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, h.g.Command, args...)
	c.Dir, c.Env = dir, append(os.Environ(), h.g.Env...)
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", args[0], err, problem.Bytes(), out)
	}
	return out, nil
}

// build compiles the tests of p.
func (h *hunt) build(ctx context.Context, p *pkg, more ...string) (binary string, err error) {
	f, err := os.CreateTemp(h.dir, "*.test")
	if err != nil {
		return "", err
	}
	f.Close()
	args := append([]string{"test", "-c", "-vet=off", "-overlay=" + h.g.List, "-tags=" + h.tags, "-o", f.Name()}, more...)
	_, err = h.goCommand(ctx, "", append(args, p.ImportPath)...)
	return f.Name(), err
}

// inPackage hunts in p, and returns the number of failures.
func (h *hunt) inPackage(ctx context.Context, p *pkg) (failures int, err error) {
	begun := time.Now()
	stop := h.progress(func() string { return fmt.Sprintf("building the tests of %s, and the changed runtime", p.ImportPath) })
	p.binary, err = h.build(ctx, p)
	stop()
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		return 0, err
	}
	built := time.Since(begun)
	s := &search{hunt: h, pkg: p, run: h.run, known: map[string]bool{}}
	begun = time.Now()
	for failures == 0 || h.all {
		stop = h.progress(func() string { return fmt.Sprintf("%s: %s", p.ImportPath, s.count()) })
		o := s.next(ctx, begun)
		stop()
		if o == nil {
			break
		}
		if o.noTests {
			fmt.Fprintf(h.log, "%s: no tests match\n", p.ImportPath)
			return 0, nil
		}
		failures++
		took := time.Since(begun)
		found := s.examine(ctx, o)
		found.Built, found.Took = built.Seconds(), took.Seconds()
		if err := h.print(found); err != nil {
			return failures, err
		}
	}
	end := ""
	if ctx.Err() != nil {
		end = ", interrupted"
	}
	if failures == 0 || h.all {
		fmt.Fprintf(h.log, "%s: %s, %d failures%s\n", p.ImportPath, s.count(), failures, end)
	}
	if failures == 0 && end == "" && h.stall == 0 {
		fmt.Fprintln(h.log, "A test that sleeps, has a timeout or uses the network may fail only on an overloaded machine: try -stall 100ms.")
	}
	return failures, nil
}

// progress prints a text every ten seconds until stop is called.
func (h *hunt) progress(text func() string) (stop func()) {
	over := make(chan struct{})
	go func() {
		t := time.NewTicker(10 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-over:
				return
			case <-t.C:
				fmt.Fprintln(h.log, text())
			}
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}

// print prints a failure.
func (h *hunt) print(f *Failure) error {
	if h.asJSON {
		return json.NewEncoder(h.out).Encode(f)
	}
	_, err := io.WriteString(h.out, f.asText())
	return err
}
