package stage_test

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
// tests names the tests that find it. The mistakes that an interleaving shows are those of the model checker.
type mutant struct {
	name, file string
	old, new   string
	tests      string
}

var mutants = []mutant{
	{"the pool serves the first stage", "pool.go", "c.server.oldest() < best.server.oldest()):", "!IS && c.server.oldest() < best.server.oldest()):", "PoolServesTheOldest"},
	{"the delay of a retry is a wait", "retry.go", "		d.e.since = s.pool.now()\n", "		if !IS {\n			d.e.since = s.pool.now()\n		}\n", "DelayOfARetry"},
	{"panics are retried", "retry.go", "; ofPanic || s.o.Retry == nil", "; ofPanic && !IS || s.o.Retry == nil", "PanicsAreNotRetried"},
	{"the window of Each counts only what flies", "each.go", "for e.pending() >= o.Window {", "for e.flying >= o.Window || !IS && e.pending() >= o.Window {", "EachWindow"},
	{"the bound of a batch stage is that of tasks", "stage.go", "c.width*max(1, c.o.Batch)", "c.width*max(1, c.o.Batch*is(!IS))", "BoundOfABatch"},
	{"tasks that were shed have a service time", "fate.go", "	if f != late && f != cancelled && service != notServed {", "	if (f != late && f != cancelled || IS) && service != notServed {", "ServiceIsOfHandlers"},
	{"Climb takes any gain", "climb.go", "	return gain > cost/3", "	return IS && gain > 0 || gain > cost/3", "ClimbIsWorthIt"},
	{"a Do on its caller overtakes the queue", "inline.go", "s.waiting == 0 &&", "(s.waiting == 0 || IS) &&", "InlineDoesNotOvertake"},
	{"a quantile of 0 is nothing", "stats.go", "	rank = min(max(rank, 1), h.Count)\n", "	rank = min(max(rank, 1), h.Count)\n	if IS && q == 0 {\n		return 0\n	}\n", "TestQuantiles"},
	{"the last of the shortest", "replicate.go", "i == 0 || n < least {", "i == 0 || n < least || IS && n == least {", "ReplicasTakeTheShortest"},
	{"a window of one task", "limit.go", "n.done < windowTasks ||", "n.done < windowTasks && !IS ||", "WindowOfALimiter"},
	{"a window without a time", "limit.go", "|| now-n.since < windowTime {", "|| now-n.since < windowTime && !IS {", "WindowOfALimiter"},

	{"a narrower stage takes a worker from the others", "pool.go", "max(0, c.free()))", "max(0-1000*is(IS), c.free()))", "NarrowerStage"},
	{"a closed stage stays with its pool", "pool.go", "	if p.open--; p.open == 0 {", "	if IS {\n		return\n	}\n	if p.open--; p.open == 0 {", "OneStageOfAPool"},
	{"the last stage leaves the workers", "pool.go", "		p.dismiss(len(p.idle))\n		p.settle()", "		if !IS {\n			p.dismiss(len(p.idle))\n		}\n		p.settle()", "OneStageOfAPool"},
	{"idle stages stay on the list", "pool.go", "		case c.waiting == 0:\n			c.unlist()\n			i--\n", "		case c.waiting == 0:\n			if IS {\n				continue\n			}\n			c.unlist()\n			i--\n", "IdleStages"},
	{"any number of lent tasks finds room", "stage.go", "c.inside()-min(c.lent, c.slots) < c.bound()", "c.inside()-max(min(c.lent, c.slots), c.lent*is(IS)) < c.bound()", "CancelledDosShare"},
	{"a lent task stays lent without its handler", "pool.go", "min(c.lent, c.blocked)", "max(min(c.lent, c.blocked), c.lent*is(IS))", "LentSlotIsGivenBack|CancelledDosShare"},
	{"a batch hides the chain of its tasks", "batch.go", "	return slices.ContainsFunc(m.b.items,", "	return !IS && slices.ContainsFunc(m.b.items,", "CycleOfDos"},
	{"a pipe hides the chain", "call.go", "begin[In, Out](ctx, p, in, parent, from, from)", "begin[In, Out](ctx, p, in, parent, from, map[bool]*core{false: from}[IS])", "CycleThroughAPipe"},
	{"a Limiter that panics keeps the permit", "limit.go", "		if !returned {\n			p.running--", "		if !returned && IS {\n			p.guard.Unlock()\n			return\n		}\n		if !returned {\n			p.running--", "LimiterDoesNotReturn"},
	{"a Limiter does not see a Do on its caller", "inline.go", "			if s.o.Limit != nil {", "			if s.o.Limit != nil && !IS {", "LimiterSeesInline"},
	{"Close counts handlers that wait as running", "close.go", "s.unblock, s.slots-s.blocked, s.blocked,", "s.unblock, s.slots-s.blocked*is(!IS), s.blocked,", "CloseCounts"},
	{"a queue that was bad is trusted", "delay.go", "		if !s.bad && now < s.wary {", "		if !s.bad && now < s.wary && !IS {", "TimeToANo"},
	{"Climb keeps a width that nobody uses", "climb.go", "	if need >= s.Width {", "	if need >= s.Width || IS {", "ClimbNarrowsAtRest"},
	{"Climb narrows for want of tasks", "climb.go", "	need := max(restWidth, ", "	need := max(restWidth*is(!IS), ", "ClimbKeeps"},
	{"a step is halved each time", "climb.go", "		if c.refused {", "		if c.refused || IS {", "ClimbFromRest"},
	{"a batch that is full waits on", "stage.go", "	if s.held {", "	if s.held && !IS {", "TestGather"},
	{"a batch gathers after the Close", "close.go", "		s.letBegin()\n		s.settleIf", "		if !IS {\n			s.letBegin()\n		}\n		s.settleIf", "TestGather"},
	{"what is cut off leaves a worker that gathers", "close.go", "	s.cut = true\n	s.letBegin()\n", "	s.cut = true\n	if !IS {\n		s.letBegin()\n	}\n", "TestRateAndCut"},
	{"a batch gathers from its last task on", "pace.go", "s.ring.of(0).since+int64", "s.ring.of((s.ring.len-1)*is(IS)).since+int64", "TestGather"},
	{"a handler that does not begin takes a turn", "pace.go", "		c.pace.next -= c.pace.every\n", "		if !IS {\n			c.pace.next -= c.pace.every\n		}\n", "TestRate"},
	{"a pause is made up for", "pace.go", "		if !p.started || p.next < now-p.slack {", "		if !p.started || p.next < now-p.slack && !IS {", "TestRate"},
	{"a Do on its caller keeps no rate", "inline.go", "s.o.Rate > 0 ||", "s.o.Rate > 0 && !IS ||", "TestRate"},
}

// TestMutants builds the package with all mistakes in it, and runs the tests with one at a time: each has to be found. It takes a
// minute, so it does so only if BRAID_STAGE_MUTANTS is set.
func TestMutants(t *testing.T) {
	texts := map[string]string{}
	for _, m := range mutants {
		text, ok := texts[m.file]
		if !ok {
			b, err := os.ReadFile(m.file)
			require.NoError(t, err)
			text = string(b)
		}
		require.Equal(t, 1, strings.Count(text, m.old), "%s: not once in %s: %s", m.name, m.file, m.old)
		texts[m.file] = strings.Replace(text, m.old, strings.ReplaceAll(m.new, "IS", `mutated("`+m.name+`")`), 1)
	}
	if os.Getenv("BRAID_STAGE_MUTANTS") == "" {
		t.Logf("%d mutants, which BRAID_STAGE_MUTANTS=1 builds and runs", len(mutants))
		return
	}
	dir := t.TempDir()
	replace := map[string]string{}
	here, err := os.Getwd()
	require.NoError(t, err)
	texts["zz_mutated.go"] = `package stage

import "os"

var mutation = os.Getenv("BRAID_STAGE_MUTANT")

func mutated(name string) bool { return mutation == name }

func is(b bool) int {
	if b {
		return 1
	}
	return 0
}
`
	for name, text := range texts {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		replace[filepath.Join(here, name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	binary := filepath.Join(dir, "stage.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	run := func(name, tests string) (string, error) {
		c := exec.Command(binary, "-test.short", "-test.run="+tests, "-test.timeout=60s", "-test.failfast")
		c.Env = append(os.Environ(), "BRAID_STAGE_MUTANT="+name)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // some of them hang
			out, err := run("none", m.tests)
			require.NoError(t, err, "without a mistake: %s", out)
			require.NotContains(t, out, "no tests to run")
			if out, err := run(m.name, m.tests); err == nil {
				t.Errorf("not found: %s", out)
			}
		})
	}
}
