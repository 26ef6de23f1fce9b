package seeds

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// Every tenth seed runs twice. So does every seed with Twice, and a seed from the environment.
func TestWhichRunsAreTwice(t *testing.T) {
	t.Setenv("BRAID_SEEDS", "")
	for want, set := range map[string]func(o *Options){
		"[8 9 10* 11]":   func(o *Options) { o.First, o.Seeds = 8, 4 },
		"[1* 2*]":        func(o *Options) { o.Twice, o.Seeds = true, 2 },
		"[7-spill1..3*]": func(*Options) { t.Setenv("BRAID_SEED", "7-spill1..3") },
	} {
		x := new(toy)
		o := x.options()
		set(&o)
		Test(t, o)
		require.Equal(t, want, fmt.Sprint(x.ran))
		require.NoError(t, os.Unsetenv("BRAID_SEED"))
	}
}

// A guided search begins half of its runs after a rare state.
func TestGuidedRunsBeginBehindAState(t *testing.T) {
	x := new(toy)
	o := x.options()
	o.Guided, o.Seeds = true, 200
	Test(t, o)
	forked := 0
	for _, name := range x.ran {
		if strings.Contains(name, "-") {
			forked++
		}
	}
	require.InDelta(t, 100-round/2, forked, 30)
}

// The String of a Run is parsed to the same Run.
func TestParse(t *testing.T) {
	for _, name := range []string{"1", "7-spill1,3..5-x2", "7-12.34", "7-12.34-56:78", "18446744073709551615-é1-2.3"} {
		r, err := Parse(name)
		require.NoError(t, err)
		require.Equal(t, name, r.String())
	}
	for _, name := range []string{"", "0", "x", "-1", "1-", "1-2", "1-x", "1-x1,", "1-x1..9999999", "1.2", "1 -x1"} {
		_, err := Parse(name)
		require.Error(t, err, name)
	}
}

// A shorter run keeps the faults that the failure needs, and the text of the failure without numbers.
func TestShortenKeepsNeededFaults(t *testing.T) {
	x := &toy{fails: func(all []int, faults int) error {
		if faults < 3 {
			return errors.New("another failure")
		}
		return fmt.Errorf("node a1 has %d, after %d faults", all[0], faults)
	}}
	short := Shortened(x, Run{Seed: 1}, 400)
	r := x.Run(short, How{Tell: true})
	require.Regexp(t, `node a1 has \d, after 3 faults`, r.Err.Error())
	require.Len(t, short.Off, 17)
}

// Each manner of a try occurs, and does what its name says.
func TestMannersOfATry(t *testing.T) {
	x := &toy{fails: func([]int, int) error { return errors.New("it fails") }}
	was := x.Run(Run{Seed: 1}, How{Tell: true})
	came := map[[3]bool]bool{}
	for seed := range uint64(200) {
		draw := draws.Source(seed)
		next := try(Run{Seed: 1}, was, &draw)
		forked := len(next.Forks) > 0
		came[[3]bool{len(next.Off) > 0, forked, forked && next.Forks[0].Step == 0}] = true
	}
	require.Equal(t, map[[3]bool]bool{
		{true, false, false}: true, {true, true, false}: true, {true, true, true}: true, {false, true, false}: true, {false, true, true}: true,
	}, came)
}

// The text of a failure has its cause, what is known about the run, and the command that repeats the run.
func TestCausesOfAFailure(t *testing.T) {
	fails := func([]int, int) error { return errors.New("it fails") }
	trace := "\nThe end of its trace:\na line\na line\n"
	command := "BRAID_SEED=3 go test -v -run '^TestCausesOfAFailure$' example.org/x\n"
	for name, c := range map[string]struct {
		toy toy
		set func(s *session)
		was Result
		all []string
		no  []string
	}{
		"fails":        {toy{fails: fails}, func(*session) {}, Result{Err: errors.New("it fails")}, []string{"seed 3: it fails\n", trace, "\t" + command}, []string{"shortened"}},
		"not again":    {toy{}, func(*session) {}, Result{Err: errors.New("it fails")}, []string{"it fails\n\nLater runs of the seed did not fail\n", trace}, nil},
		"mark":         {toy{}, func(s *session) { s.tries = 1 }, Result{}, []string{"main has marked the test as failed\n", "It is not shortened: main has returned no error"}, nil},
		"a mark, jobs": {toy{}, func(s *session) { s.jobs = 2 }, Result{}, []string{"in this run or one of the 31 runs after it"}, nil},
		"unending":     {toy{fails: fails}, func(s *session) { s.tries = 9 }, Result{Unending: true, Err: errors.New("busy")}, []string{"seed 3: busy\n"}, []string{"trace:\na"}},
		"shorter":      {toy{fails: fails}, func(s *session) { s.tries = 99 }, Result{Err: errors.New("it fails")}, []string{"seed 3-spill1..20", "Its messages, faults and lines of Log", "the run ends: it fails", "BRAID_SEED=3-spill1..20"}, []string{trace}},
		"shorter, not deterministic": {toy{fails: fails, other: true}, func(s *session) { s.tries = 99 }, Result{Err: errors.New("it fails")},
			[]string{"seed 3: it fails\n\nThen the run was repeated: they differ", "It is not shortened: the shorter seed 3-spill1..20", trace}, nil},
		"processes":           {toy{fails: fails}, func(s *session) { s.processes = 2 }, Result{Err: errors.New("it fails")}, []string{trace, "\tBRAID_PROCESSES= " + command}, nil},
		"processes differ":    {toy{fails: fails}, func(s *session) { s.processes = 2 }, Result{Differs: true, Err: errors.New("x")}, []string{"\tBRAID_PROCESSES=2 " + command}, []string{trace}},
		"guests":              {toy{fails: fails}, func(s *session) { s.Guests = true }, Result{Err: errors.New("it fails")}, []string{"\t" + command, "\nThe order of a range over a map"}, nil},
		"a seed of its own":   {toy{fails: fails}, func(s *session) { s.one = true }, Result{Err: errors.New("it fails")}, []string{"\t" + command}, []string{trace}},
		"a step that is late": {toy{fails: fails}, func(s *session) { s.one, s.how.Stop = true, 99 }, Result{Steps: 20, Err: errors.New("it fails"), Record: &Record{How: How{Stop: 99}}}, []string{"BRAID_STOP=99: the run has no such step. It ended at step 20."}, nil},
	} {
		text := c.toy.session(t, c.set).failure(t, Run{Seed: 3}, c.was)
		for _, part := range c.all {
			require.Contains(t, text, part, name)
		}
		for _, part := range c.no {
			require.NotContains(t, text, part, name)
		}
	}
}

// A run that was performed twice has recorded its events; any other run runs again.
func TestWhatRunsAgain(t *testing.T) {
	for seed, want := range map[uint64]int{3: 1, 10: 0} {
		x := &toy{fails: func([]int, int) error { return errors.New("it fails") }}
		x.session(t, func(*session) {}).failure(t, Run{Seed: seed}, Result{Err: errors.New("it fails")})
		require.Len(t, x.ran, want)
	}
}

// A diagram is valid XML. Each message has an arrow, which points down unless the message was lost, and each band has an end.
func TestDiagramOfAToy(t *testing.T) {
	x := &toy{fails: func([]int, int) error { return errors.New("<it fails>") }}
	r := x.Run(Run{Seed: 1, Off: map[string]bool{"spill1": true}}, How{Tell: true})
	r.Record.Band("b", "", "paused", time.Second, true)
	r.Record.Band("b", "", "paused", time.Minute, false)
	file := filepath.Join(t.TempDir(), "x.svg")
	require.Equal(t, "\nIts diagram is "+file+"\n", r.draw(file, "1-spill1"))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var all struct {
		Line []struct {
			Class string `xml:"class,attr"`
			Y1    int    `xml:"y1,attr"`
			Y2    int    `xml:"y2,attr"`
		} `xml:"line"`
		Rect []struct {
			Title string `xml:"title"`
		} `xml:"rect"`
		Text []string `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(b, &all))
	arrows := map[string]int{}
	for _, l := range all.Line {
		if arrows[l.Class]++; l.Class != "node" {
			require.Greater(t, l.Y2, l.Y1)
		}
	}
	require.Equal(t, map[string]int{"node": 2, "message": 9, "message lost": 10}, arrows)
	require.Equal(t, "b is paused", all.Rect[1].Title)
	require.Contains(t, all.Text, "seed 1-spill1: the run ends: <it fails>")
}

// Segments of one stream and one moment are one message of the story.
func TestSegmentsAreOneMessage(t *testing.T) {
	r := NewRecord(Run{}, How{Tell: true})
	stream := new(int)
	for _, at := range []time.Duration{1, 1, 2} {
		r.Add(Scene{At: at, Text: "x", To: "b", Bytes: 1, Message: &Message{From: "a", Stream: stream}})
	}
	for range 2 {
		r.Add(Scene{At: 2, Text: "y", To: "b", Bytes: 1, Message: &Message{From: "a"}})
	}
	var texts []string
	for _, s := range r.scenes() {
		texts = append(texts, s.Text)
	}
	require.Equal(t, []string{"xx", "x", "y", "y"}, texts)
}

// A long story has all faults and lines of Log, but of the messages only those among the last lines.
func TestALongStory(t *testing.T) {
	for _, c := range []struct{ messages, shown int }{{longStory - 2, longStory - 2}, {longStory - 1, lastMessages - 1}} {
		r := NewRecord(Run{Seed: 1}, How{Tell: true})
		r.Add(Scene{Text: "a crashes"})
		for i := range c.messages {
			r.Add(Scene{Step: i, Text: "ping", To: "b", Bytes: 4, Message: &Message{From: "a"}})
		}
		r.Add(Scene{Text: "b leads"})
		text := Result{Record: r, Err: errors.New("no progress")}.Story()
		require.Equal(t, c.shown, strings.Count(text, "ping"), text)
		require.Equal(t, c.shown < c.messages, strings.HasPrefix(text, fmt.Sprintf("    (without %d messages", c.messages-c.shown)))
		require.Regexp(t, `(?s)a crashes.*ping.*b leads\n.*the run ends: no progress\n$`, text)
	}
}
