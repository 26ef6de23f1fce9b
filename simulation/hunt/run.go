package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An outcome is what a run of a test binary in one order has done.
type outcome struct {
	order   string // the value of BRAID_ORDER
	failed  bool
	noTests bool
	test    string // the test that failed, or ""
	message string // the assertion or the panic
	kind    string // outcomes with the same kind have the same cause
	output  string
	took    time.Duration
	ended   bool // the test has ended, without a panic
}

// endless is the kind of an order that does not end.
const endless = "endless"

// most is the number of bytes that hunt keeps of the output of a test, at its beginning and at its end.
const most = 256 << 10

// A clipped keeps the beginning and the end of what is written to it.
type clipped struct {
	mu         sync.Mutex
	head, tail []byte
	cut        bool
}

func (c *clipped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	k := min(n, most-len(c.head))
	c.head = append(c.head, p[:k]...)
	if c.tail = append(c.tail, p[k:]...); len(c.tail) > 2*most {
		c.cut = true
		c.tail = append([]byte{}, c.tail[len(c.tail)-most:]...)
	}
	return n, nil
}

func (c *clipped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	between := ""
	if c.cut {
		between = "\n...\n"
	}
	return string(c.head) + between + string(c.tail)
}

// perform runs a test binary in an order.
func (h *hunt) perform(ctx context.Context, p *pkg, binary, run, order, logTo string) *outcome {
	args := []string{"-test.paniconexit0", "-test.count=1", "-test.timeout=10m", "-test.parallel=4", "-test.run=" + run}
	if h.skip != "" {
		args = append(args, "-test.skip="+h.skip)
	}
	if h.short {
		args = append(args, "-test.short")
	}
	value, err := inFile(h.dir, order)
	if err != nil {
		return &outcome{order: order, failed: true, message: err.Error(), kind: "file"}
	}
	if _, name, ok := strings.Cut(value, "@"); ok {
		defer os.Remove(name)
	}
	limited, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	c := exec.CommandContext(limited, binary, args...)
	c.Dir = p.Dir
	c.Env = append(os.Environ(), "PWD="+p.Dir, "BRAID_ORDER="+value)
	if logTo != "" {
		c.Env = append(c.Env, "BRAID_ORDER_LOG="+logTo)
	}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGQUIT) } // the runtime prints the stacks
	c.WaitDelay = 2 * time.Second
	out := &clipped{}
	c.Stdout, c.Stderr = out, out
	begun := time.Now()
	err = c.Run()
	o := &outcome{order: order, output: out.String(), took: time.Since(begun)}
	if ctx.Err() != nil {
		return o
	}
	switch {
	case limited.Err() != nil:
		o.failed, o.message, o.kind = true, fmt.Sprintf("    the order has not ended after %v of real time: see -limit", h.limit), endless
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		o.failed = true
		o.read(err)
	default:
		o.noTests = strings.HasPrefix(o.output, "testing: warning: no tests to run")
	}
	return o
}

// longest is the greatest number of bytes of a list of switches in BRAID_ORDER itself. A longer list is in a file: Linux allows 128 KB for a
// variable of the environment, and the command that repeats an order must be readable.
const longest = 1000

// inFile returns a value of BRAID_ORDER for the order. A long list of switches goes into a new file in the folder dir, with a switch in each line.
func inFile(dir, order string) (value string, err error) {
	seed, list, _ := strings.Cut(order, ":")
	if len(list) <= longest {
		return order, nil
	}
	f, err := os.CreateTemp(dir, "order")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(strings.ReplaceAll(list, ",", "\n") + "\n")
	return seed + ":@" + f.Name(), errors.Join(err, f.Close())
}

var (
	failLine  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	logLine   = regexp.MustCompile(`^\s+([\w.-]+\.go:\d+): (.*)`)
	panicLine = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|SIG[A-Z]+: .*)`)
	digits    = regexp.MustCompile(`0x[0-9a-f]+|\d[\d.]*`)
	ran       = regexp.MustCompile(`(?m)^\s+(Test\w+) \(`)
)

// read finds the failure in the output.
func (o *outcome) read(err error) {
	if at := failLine.FindAllStringSubmatchIndex(o.output, -1); at != nil {
		// the deepest subtest comes last among the lines that belong together, with its messages after it
		m := at[0]
		for _, next := range at[1:] {
			if name := o.output[next[2]:next[3]]; strings.HasPrefix(name, o.output[m[2]:m[3]]+"/") {
				m = next
			}
		}
		o.test = o.output[m[2]:m[3]]
		where := ""
		for i, line := range strings.Split(o.output[m[1]:], "\n") {
			if i == 0 {
				continue
			}
			if got := logLine.FindStringSubmatch(line); got != nil && where == "" {
				where = got[1]
			} else if i > 20 || line == "" || strings.HasPrefix(line, "FAIL") || strings.Contains(line, "--- ") || !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
				break
			}
			o.message += strings.TrimRight(line, " ") + "\n"
		}
		o.kind = o.test + " " + where
	}
	o.ended = o.test != ""
	if m := panicLine.FindStringSubmatch(o.output); m != nil {
		o.ended = false
		text := m[1]
		kind := digits.ReplaceAllString(text, "0")
		if strings.HasPrefix(text, "panic: test timed out") {
			kind = "panic: test timed out"
			text += ": all its goroutines wait, and no timer is left to end a wait"
			if got := ran.FindStringSubmatch(o.output); got != nil {
				o.test = got[1]
			}
		}
		o.message = "    " + text + "\n" + o.message
		o.kind += " " + kind
	}
	if o.message == "" {
		lines := strings.Split(strings.TrimSpace(o.output), "\n")
		o.message = "    " + strings.Join(lines[max(0, len(lines)-10):], "\n    ") + "\n"
		o.kind += " " + err.Error()
	}
}

// A search tries orders of a package.
type search struct {
	*hunt
	*pkg
	run   string
	known map[string]bool // the kinds of failures that were reported

	mu    sync.Mutex
	tried int           // the number of orders
	took  time.Duration // the rounds that have ended have them
	round time.Time     // the beginning of the present round, or zero
}

func (s *search) count() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := s.took
	if !s.round.IsZero() {
		took += time.Since(s.round)
	}
	return fmt.Sprintf("%d orders, %.0f a second", s.tried, float64(s.tried)/max(took.Seconds(), 1e-3))
}

// next returns the next failure of an unknown kind, in the order of the seeds, or nil if there is none.
func (s *search) next(ctx context.Context, begun time.Time) *outcome {
	for ctx.Err() == nil {
		from := s.tried
		size := 8 * s.jobs
		if s.lasts > 0 {
			if time.Since(begun) >= s.lasts {
				return nil
			}
		} else if size = min(size, s.n-from); size <= 0 {
			return nil
		}
		s.mu.Lock()
		s.round = time.Now()
		s.mu.Unlock()
		all := s.together(ctx, size, func(i int) *outcome {
			o := s.perform(ctx, s.pkg, s.binary, s.run, fmt.Sprint(s.first+uint64(from+i), s.how), "")
			s.mu.Lock()
			s.tried++
			s.mu.Unlock()
			return o
		}, func(o *outcome) bool { return o.failed && !s.known[o.kind] || o.noTests })
		s.mu.Lock()
		s.took += time.Since(s.round)
		s.round = time.Time{}
		s.mu.Unlock()
		for i, o := range all {
			if o != nil && ctx.Err() == nil && (o.failed && !s.known[o.kind] || o.noTests) {
				s.known[o.kind] = true
				s.mu.Lock()
				s.tried = from + i + 1
				s.mu.Unlock()
				return o
			}
		}
	}
	return nil
}

// together calls f for the numbers below n, in a goroutine for each job. After a result for which last is true, it begins no higher
// number.
func (h *hunt) together(ctx context.Context, n int, f func(i int) *outcome, last func(*outcome) bool) []*outcome {
	all := make([]*outcome, n)
	var mu sync.Mutex
	var done sync.WaitGroup
	at := 0
	for range min(n, h.jobs) {
		done.Go(func() {
			for {
				mu.Lock()
				i := at
				at++
				over := i >= n
				mu.Unlock()
				if over || ctx.Err() != nil {
					return
				}
				o := f(i)
				mu.Lock()
				if all[i] = o; last(o) {
					n = min(n, i)
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return all
}

// logged performs an order with a log, and returns the log. An order of an endless failure is performed for a short time, because a loop may write
// 50 MB a second.
func (s *search) logged(ctx context.Context, failure *outcome, run, order string) (*outcome, []byte, error) {
	if failure.kind == endless {
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		ctx = short
	}
	f, err := os.CreateTemp(s.dir, "log")
	if err != nil {
		return nil, nil, err
	}
	name := f.Name()
	defer os.Remove(name)
	f.Close()
	o := s.perform(ctx, s.pkg, s.binary, run, order, name)
	b, err := os.ReadFile(name)
	return o, b, err
}
