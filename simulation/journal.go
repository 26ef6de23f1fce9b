package simulation

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/braidgo/braid/simulation/internal/seeds"
)

// A journal is what a run leaves.
type journal struct {
	hash   uint64          // a hash of all events
	record *seeds.Record   // the faults and the story of the run, or nil
	marks  map[string]bool // names that were passed to Sometimes; true means that the run has reached the name
	came   []seeds.Milestone
	harmed map[string]bool // the names of the nodes that had a fault
}

// addScene adds e to the story of the run if e is a message, a fault or a line of Log. It returns false if the story has become too long.
func (j *journal) addScene(step int, e event) bool {
	r := j.record
	scene := seeds.Scene{Step: step, At: e.at}
	switch e.kind {
	case made:
		r.Name(e.text)
		return true
	case resumed, begun, called, fired:
		if r.Stops(step) {
			fmt.Fprintf(os.Stderr, "simulation: before step %d: %v\n", step, e)
			runtime.Breakpoint()
		}
		return true
	case arrived:
		if e.message != nil {
			r.Arrives(e.message, e.at)
		}
		return true
	case sent:
		scene.To, scene.Bytes, scene.Text, scene.Message = e.of.name, e.n, e.text, e.message
	case crashed:
		j.band(e.at, e.of, nil, [...]string{"crashed", "without power"}[e.n], true)
		scene.Text, scene.Crosses = e.act(), []string{e.of.name}
	case restarted:
		j.band(e.at, e.of, nil, "crashed", false)
		j.band(e.at, e.of, nil, "without power", false)
		scene.Text = e.act()
	case broken:
		scene.Text, scene.Crosses = e.act(), []string{e.host.name, e.of.name}
	case logged:
		if scene.Text = e.text; e.host != nil {
			scene.Text = e.act()
		}
	default:
		return true
	}
	return r.Add(scene)
}

// band records the beginning or the end of a fault for the diagram. The record is not an event, and does not change the hash.
func (j *journal) band(at time.Duration, of, with *place, what string, begins bool) {
	if begins {
		j.hit(of.name)
	}
	if !j.record.Tells() {
		return
	}
	other := ""
	if with != nil {
		other = with.name
	}
	j.record.Band(of.name, other, what, at, begins)
}

// A fault of a node whose name nobody else uses hits nothing, so that a test with a wrong name would pass for ever. The World therefore
// records the names of all nodes that have had a fault, and the nodes that were used: that had a task, a callback, a guest, a listener, a
// socket, a dial or a file.

// hit records that the node with this name has had a fault, itself or on a link.
func (j *journal) hit(name string) {
	if j.harmed == nil {
		j.harmed = map[string]bool{}
	}
	j.harmed[name] = true
}
