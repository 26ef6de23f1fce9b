package actor_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutant is a mistake: in a file of the package, old is replaced by new, in which IS stands for whether the mistake is made.
type mutant struct {
	name     string
	file     string
	old, new string
}

var mutants = []mutant{
	{"SendAfter obeys Cap", "timer.go", "_ = s.post(m, q, true)", "_ = s.post(m, q, !IS)"},
	{"a wrapped ErrStopped is a failure", "end.go", "	case errors.Is(err, ErrStopped):\n		err = nil", "	case err == ErrStopped, errors.Is(err, ErrStopped) && !IS:\n		err = nil"},
	{"a wrapped ErrStopped is restarted", "self.go", "errors.Is(err, ErrStopped)", "(err == ErrStopped || errors.Is(err, ErrStopped) && !IS)"},
	{"a normal end kills the linked one", "left.go", "of this actor's end\n		if err != nil {", "of this actor's end\n		if err != nil || IS {"},
	{"a normal end kills the one that has linked", "left.go", "if held && err != nil {", "if held && (err != nil || IS) {"},
	{"a RecvOp gives back room that was not counted", "op.go", "			if counted {", "			if counted || IS {"},
	{"OnEnd is first to last", "left.go", "	for s.onEnd != mark {\n		c := s.onEnd\n", "	for IS && s.onEnd != mark && s.onEnd.older != mark {\n		c := s.onEnd\n		for c.older.older != mark {\n			c = c.older\n		}\n		f := c.older.f\n		c.older = mark\n		f()\n	}\n	for s.onEnd != mark {\n		c := s.onEnd\n"},
	{"answered requests stay in the ring of their home", "ask.go", "	c.home.Swap(nil).drop()", "	if h := c.home.Swap(nil); !IS {\n		h.drop()\n	}"},
	{"the linked one keeps its watcher", "left.go", "		it.unwatch(&there)\n", "		if !IS {\n			it.unwatch(&there)\n		}\n"},
	{"the one that has linked keeps its watcher", "left.go", "		me.unwatch(&here)\n		held", "		if !IS {\n			me.unwatch(&here)\n		}\n		held"},
	{"the one that has linked keeps the link", "left.go", "held := s.take(&mine)", "held := IS || s.take(&mine)"},
	{"a served RecvOp stays listed", "op.go", "			x.ops = slices.Delete(x.ops, i, i+1)\n			return true", "			if !IS {\n				x.ops = slices.Delete(x.ops, i, i+1)\n			}\n			return true"},
	{"a mailbox is not rebuilt", "inbox.go", "	if in.kept.sparse() &&", "	if !IS && in.kept.sparse() &&"},
	{"a restart counts a moment too long", "restart.go", "now.Sub(recent[0]) >= p.Within", "(now.Sub(recent[0]) > p.Within || !IS && now.Sub(recent[0]) == p.Within)"},
	{"a stopped actor accepts a Watch", "left.go", "|| s.closed {", "|| s.closed && !IS {"},
	{"the timers of an actor outlive it", "end.go", "	if in.self != nil {\n		defer in.self.takeBack(nil)", "	if in.self != nil && !IS {\n		defer in.self.takeBack(nil)"},

	{"a life has the context of the actor", "restart.go", "c.Cancel(nil) })", "\n					if !IS {\n						c.Cancel(nil)\n					}\n				})"},
	{"a life does not wait for the children of the last", "restart.go", "		next := func(err error) error {\n", "		next := func(err error) error {\n			if IS {\n				return life()\n			}\n"},
	{"a failure takes nothing back", "self.go", "			s.takeBack(&c.left)\n", "			if !IS {\n				s.takeBack(&c.left)\n			}\n"},
	{"a failure takes all back", "self.go", "			s.takeBack(&c.left)\n", "			if s.takeBack(&c.left); IS {\n				s.takeBack(nil)\n			}\n"},
	{"a Catch that is done takes with it", "self.go", "		s.take(&f.catch.left)\n", "		if IS {\n			s.takeBack(&f.catch.left)\n		}\n		s.take(&f.catch.left)\n"},
	{"a stopped actor is restarted for ever", "restart.go", "return !stopped || left > 0 && less", "return !stopped || left > 0 && less || IS"},
	{"a stopped actor is restarted without progress", "restart.go", "left > 0 && less\n", "left > 0 && (less || IS)\n"},
	{"a stopped actor is not restarted", "restart.go", "left > 0 && less\n", "left > 0 && less && !IS\n"},
	{"a Stop does not end a Backoff", "end.go", "		if in.ties != nil {\n			in.ties.stopped", "		if in.ties != nil && !IS {\n			in.ties.stopped"},
	{"restarts let nobody run", "self.go", "			s.spin()\n			return c.h(err)", "			if !IS {\n				s.spin()\n			}\n			return c.h(err)"},
	{"a Stop kills the children", "end.go", "	if s.drains(err) {", "	if s.drains(err) && !IS {"},
	{"an ErrStopped kills the children", "family.go", "(s.closed || err != nil) &&", "(s.closed || err != nil && !IS) &&"},
	{"a normal end stops the children", "family.go", "(s.closed || err != nil) &&", "(s.closed || err != nil || IS) &&"},
	{"a tree leaves the requests in its mail", "family.go", "	calls.fail(nil)\n", "	if !IS {\n		calls.fail(nil)\n	}\n"},
	{"a derived context is of no actor", "family.go", "	l, _ := ctx.Value(lineageKey{}).(*life)\n", "	l, _ := ctx.Value(lineageKey{}).(*life)\n	if IS && l != nil && ctx != context.Context(&l.ctx) {\n		l = nil\n	}\n"},
	{"a child stays in its family", "end.go", "	s.leaveFamily()\n", "	if !IS {\n		s.leaveFamily()\n	}\n"},
	{"an actor asks itself", "ask.go", "	if !to.lifeOf().runsHere() {", "	if IS || !to.lifeOf().runsHere() {"},
	{"an Await runs on the last task", "self.go", "			s.untasked()\n			n.begin", "			if !IS {\n				s.untasked()\n			}\n			n.begin"},
	{"a task is its own, whoever asks", "ask.go", "	return id != 0 && id == goroutineID()", "	return id != 0 && (id == goroutineID() || IS)"},
	{"a watcher that ends is listed on", "left.go", "	takeBack := func() { at.unwatch(&w.watcher) }", "	takeBack := func() {\n		if !IS {\n			at.unwatch(&w.watcher)\n		}\n	}"},
	{"a Loop keeps the frames around it", "self.go", "	for n.cond == nil && f != nil", "	for n.cond == nil && !IS && f != nil"},
	{"a Loop drops the Catch around it", "self.go", "f != nil && f.catch == nil {", "f != nil && (f.catch == nil || IS) {"},
	{"a Link wraps the failure of a Link", "left.go", "err.(*ExitError); ok {", "err.(*ExitError); ok && !IS {"},
	{"the first child makes a channel", "inbox.go", "	if cancelctx.Of(ctx) != nil || ctx.Done() != nil {", "	if !IS && cancelctx.Of(ctx) != nil || ctx.Done() != nil {"},
}

// TestMutants builds the package with all mistakes in it, and runs the tests with one at a time: each has to be found. It takes a
// minute, so it does so only if BRAID_ACTOR_MUTANTS is set.
func TestMutants(t *testing.T) {
	if os.Getenv("BRAID_ACTOR_MUTANT") != "" {
		return // it is one of them
	}
	texts := map[string]string{}
	for _, m := range mutants {
		if _, ok := texts[m.file]; !ok {
			b, err := os.ReadFile(m.file)
			require.NoError(t, err)
			texts[m.file] = string(b)
		}
		require.Equal(t, 1, strings.Count(texts[m.file], m.old), "%s: not once in %s: %s", m.name, m.file, m.old)
	}
	if os.Getenv("BRAID_ACTOR_MUTANTS") == "" {
		t.Logf("%d mutants, which BRAID_ACTOR_MUTANTS=1 builds and runs", len(mutants))
		return
	}
	dir := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	// build makes a binary with these mistakes, no two of which are in the same place.
	build := func(name string, some []mutant) (binary string) {
		mutated := map[string]string{"zz_mutated.go": "package actor\n\nimport \"os\"\n\nvar mutation = os.Getenv(\"BRAID_ACTOR_MUTANT\")\n\nfunc mutated(name string) bool { return mutation == name }\n"}
		for _, m := range some {
			text, ok := mutated[m.file]
			if !ok {
				text = texts[m.file]
			}
			mutated[m.file] = strings.Replace(text, m.old, strings.ReplaceAll(m.new, "IS", `mutated("`+m.name+`")`), 1)
		}
		replace := map[string]string{}
		for file, text := range mutated {
			at := filepath.Join(dir, name+"_"+file)
			require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
			replace[filepath.Join(here, file)] = at
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		require.NoError(t, err)
		at := filepath.Join(dir, name+".json")
		require.NoError(t, os.WriteFile(at, overlay, 0o644))
		binary = filepath.Join(dir, name+".test")
		out, err := exec.Command("go", "test", "-c", "-overlay", at, "-o", binary, ".").CombinedOutput()
		require.NoError(t, err, string(out))
		return binary
	}
	run := func(binary, name string) (string, error) {
		c := exec.Command(binary, "-test.short", "-test.timeout=40s", "-test.failfast", "-test.run=^Test")
		c.Env = append(os.Environ(), "BRAID_ACTOR_MUTANT="+name)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	var batches [][]mutant
	for _, m := range mutants {
		at := 0
		for ; at < len(batches); at++ {
			if !clash(texts, batches[at], m) {
				break
			}
		}
		if at == len(batches) {
			batches = append(batches, nil)
		}
		batches[at] = append(batches[at], m)
	}
	for i, batch := range batches {
		binary := build("batch"+string(rune('a'+i)), batch)
		out, err := run(binary, "none")
		require.NoError(t, err, "without a mistake: %s", out)
		for _, m := range batch {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel() // some of them hang
				if out, err := run(binary, m.name); err == nil {
					t.Errorf("not found: %s", out)
				}
			})
		}
	}
}

// clash reports whether m is in the place of one of the others.
func clash(texts map[string]string, others []mutant, m mutant) bool {
	for _, o := range others {
		if o.file != m.file {
			continue
		}
		a, b := strings.Index(texts[m.file], m.old), strings.Index(texts[m.file], o.old)
		if a < b+len(o.old) && b < a+len(m.old) {
			return true
		}
	}
	return false
}
