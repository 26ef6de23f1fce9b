package raft

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// A cluster has three simulated nodes, and records their history.
type cluster struct {
	w       *simulation.World
	mistake Mistake
	names   []string
	live    []*Node // by the number of the name; nil after a crash

	leaders   map[int]string // by the term
	committed []record
	acked     int // the highest index that was acknowledged to a proposer
	proposed  int
	stale     error // the error of a read that has missed an entry
	looked    []look
}

// A record is an entry that a node regarded as committed, and the term in which this happened first.
type record struct {
	Entry
	in int
}

// A look holds all values on which the invariants of a node depend.
type look struct {
	n                             *Node
	role                          Role
	term, commit, length, lastOne int
}

func newCluster(w *simulation.World, mistake Mistake, names ...string) *cluster {
	return &cluster{w: w, mistake: mistake, names: names, live: make([]*Node, len(names)), leaders: map[int]string{}, looked: make([]look, len(names))}
}

// start restarts a node. If its disk fails, it crashes.
func (c *cluster) start(node *simulation.Node) {
	i := slices.Index(c.names, node.Name())
	node.Restart(func(ctx context.Context) {
		defer func() { c.live[i] = nil }() // also after a crash
		n, err := c.open(node)
		if err == nil {
			c.live[i] = n
			_ = node.Go(func() { c.propose(ctx, n) })
			_ = node.Go(func() { c.read(ctx, n) })
			err = n.Run(ctx)
		}
		c.w.Log("%s stops: %v", node.Name(), err)
		node.Crash()
	})
}

func (c *cluster) open(node *simulation.Node) (*Node, error) {
	name, disk := node.Name(), node.FS()
	slots := &Slots{}
	for k := range slots.Files {
		f, err := disk.Open(fmt.Sprint("slot", k))
		if errors.Is(err, fs.ErrNotExist) {
			f, err = disk.Create(fmt.Sprint("slot", k))
		}
		if err != nil {
			return nil, err
		}
		slots.Files[k] = f
	}
	if err := disk.Sync(); err != nil { // makes the names durable
		return nil, err
	}
	return New(Config{
		ID:      name,
		Peers:   slices.DeleteFunc(slices.Clone(c.names), func(s string) bool { return s == name }),
		Listen:  func() (net.Listener, error) { return node.Listen("tcp", ":1") },
		Dial:    func(ctx context.Context, peer string) (net.Conn, error) { return node.Dial(ctx, "tcp", peer+":1") },
		Disk:    slots,
		Rand:    c.w.Rand().IntN,
		Mistake: c.mistake,
	})
}

// propose proposes on a node, while the node lives.
func (c *cluster) propose(ctx context.Context, n *Node) {
	for {
		_ = suspend.Sleep(ctx, time.Duration(c.w.Rand().IntN(100))*time.Millisecond)
		c.proposed++
		if index, err := n.Propose(ctx, fmt.Sprint(c.proposed)); err == nil {
			c.acked = max(c.acked, index)
		}
	}
}

// read reads on a node, while the node lives. A read must see everything that was acknowledged before.
func (c *cluster) read(ctx context.Context, n *Node) {
	for {
		_ = suspend.Sleep(ctx, time.Duration(c.w.Rand().IntN(100))*time.Millisecond)
		acked := c.acked
		if index, err := n.Read(ctx); err == nil && index < acked {
			c.stale = fmt.Errorf("%s has read at index %d, and %d was acknowledged before", n.ID, index, acked)
		}
	}
}

// check looks for a violation of the properties in figure 3, on the nodes that have changed.
func (c *cluster) check() error {
	if c.stale != nil {
		return c.stale
	}
	for i, n := range c.live {
		if n == nil {
			continue
		}
		_, last := n.last()
		now := look{n, n.role, n.Term, n.commit, len(n.Log), last}
		if now == c.looked[i] {
			continue
		}
		c.looked[i] = now
		if err := errors.Join(c.checkLeader(n), c.checkCommitted(n), c.checkLogs(n)); err != nil {
			return err
		}
	}
	return nil
}

// Election safety: a term has at most one leader. Leader completeness: the leader has all entries that were committed in earlier
// terms.
func (c *cluster) checkLeader(n *Node) error {
	if n.role != Leader || c.leaders[n.Term] == n.ID {
		return nil
	}
	if other := c.leaders[n.Term]; other != "" {
		return fmt.Errorf("term %d has two leaders, %s and %s", n.Term, other, n.ID)
	}
	c.leaders[n.Term] = n.ID
	c.w.Log("%s leads term %d", n.ID, n.Term)
	c.w.Sometimes("a leader has an entry of an older term to commit", n.commit < len(n.Log) && n.Log[n.commit].Term < n.Term)
	for i, r := range c.committed {
		if r.in < n.Term && (i >= len(n.Log) || n.Log[i] != r.Entry) {
			return fmt.Errorf("%s leads term %d without entry %d, which was committed in term %d", n.ID, n.Term, i+1, r.in)
		}
	}
	return nil
}

// State machine safety: all nodes have committed the same entries.
func (c *cluster) checkCommitted(n *Node) error {
	for i := range n.commit {
		if i == len(c.committed) {
			c.committed = append(c.committed, record{n.Log[i], n.Term})
		}
		if n.Log[i] != c.committed[i].Entry {
			return fmt.Errorf("%s has committed %v at index %d, where %v was committed", n.ID, n.Log[i], i+1, c.committed[i].Entry)
		}
	}
	return nil
}

// Log matching: if two logs have an entry with the same index and term, they are equal up to this entry.
func (c *cluster) checkLogs(n *Node) error {
	for _, m := range c.live {
		if m == nil || m == n {
			continue
		}
		i := min(len(n.Log), len(m.Log))
		for i > 0 && n.Log[i-1].Term != m.Log[i-1].Term {
			i--
		}
		if !slices.Equal(n.Log[:i], m.Log[:i]) {
			return fmt.Errorf("the logs of %s and %s differ before index %d: %v, %v", n.ID, m.ID, i, n.Log, m.Log)
		}
		c.rare(n, m, i)
		c.rare(m, n, i)
	}
	return nil
}

// rare reports states on the way to figure 8: n leads, and where n has an entry of an older term, another node has one of a later
// term. Before index i the two logs are equal.
func (c *cluster) rare(n, m *Node, i int) {
	if n.role != Leader || i >= min(len(n.Log), len(m.Log)) || n.Log[i].Term >= min(n.Term, m.Log[i].Term) {
		return
	}
	c.w.Sometimes("a leader has an entry of an older term, and another node one of a later term there", true)
	for _, third := range c.live {
		if third != nil && third != n && third.term(i+1) == n.Log[i].Term {
			c.w.Sometimes("and a majority has that of the leader", true)
		}
	}
}

// scenario runs a cluster under faults, and checks its invariants after each step. At the end the faults stop, and a proposal
// must be committed.
func scenario(mistake Mistake) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 30 * time.Millisecond, Reset: 0.005, Sync: 0.001})
		c := newCluster(w, mistake, "a", "b", "c")
		for _, name := range c.names {
			c.start(w.Node(name))
		}
		w.Always(c.check)
		calm := nemesis.Start(w, nemesis.Options{Nodes: c.names, Boot: c.start, Every: election})
		_ = suspend.Sleep(ctx, 6*time.Second)
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 10 * time.Millisecond})
		calm()
		_ = suspend.Sleep(ctx, 10*time.Second)
		before := c.acked
		_ = suspend.Sleep(ctx, time.Second)
		if c.acked == before {
			return fmt.Errorf("nothing is committed, although all nodes are well")
		}
		return nil
	}
}

func TestRaft(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 10
	}
	simulation.Test(t, scenario(None), simulation.TestOptions{Seeds: seeds})
}

var mistakes = []struct {
	name    string
	mistake Mistake
	seed    uint64
	want    string
}{
	{"votes twice after a restart without sync", VotesWithoutSync, 275, "has two leaders"},
	{"commits an entry of an older term by counting", CommitsOlderTerms, 514, "committed"},
	{"a stale leader serves reads", ReadsWithoutRound, 13, "was acknowledged before"},
}

// Each mistake is found, by the invariant that it breaks. The search begins at a seed that is known to find it.
func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			seed := m.seed
			again := func() error { return simulation.Run(scenario(m.mistake), simulation.Options{Seed: seed}).Err }
			err := again()
			for ; err == nil; err = again() {
				seed++
				require.Less(t, seed, m.seed+10000, "the mistake is not found")
			}
			t.Logf("seed %d: %v", seed, err)
			require.ErrorContains(t, err, m.want)
			require.Equal(t, err, again())
		})
	}
}

// TestMistake fails. TestShorten runs it in another process, with or without guidance. It may also be run by hand.
func TestMistake(t *testing.T) {
	if i, err := strconv.Atoi(os.Getenv("BRAID_MISTAKE")); err == nil {
		m := mistakes[i]
		o := simulation.TestOptions{Options: simulation.Options{Seed: m.seed}, Seeds: 10_000, NoPreempt: true}
		if from, err := strconv.ParseUint(os.Getenv("BRAID_GUIDED"), 10, 64); err == nil {
			o.Seed, o.Guided = from, true
		}
		simulation.Test(t, scenario(m.mistake), o)
	}
}

// A guided search finds the mistake of figure 8 sooner than a search of consecutive seeds, which needs the seeds from 10005 to
// 11913.
func TestGuided(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^TestMistake$")
	c.Env = append(os.Environ(), "BRAID_MISTAKE=1", "BRAID_GUIDED=10005", "BRAID_SEEDS=40")
	out, err := c.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Regexp(t, `seed \d+-\d+:\d+.*: .* without entry \d+, which was committed`, string(out))
}

// The failure of each mistake can be shortened to a page or two, with any number of processors.
func TestShorten(t *testing.T) {
	for i, m := range mistakes {
		if testing.Short() && m.mistake != ReadsWithoutRound {
			continue // under the race detector, in processes that run one goroutine at a time, the others take minutes
		}
		t.Run(m.name, func(t *testing.T) {
			short := regexp.MustCompile(`(?s)seed \S+: ([^\n]*)\n.*Its messages, faults[^\n]*\n(.*)\n *To repeat it.*(BRAID_SEED=\S+) `)
			test := func(env ...string) []string {
				c := exec.Command(os.Args[0], "-test.run=^TestMistake$")
				c.Env = append(append(os.Environ(), "BRAID_MISTAKE="+strconv.Itoa(i)), env...)
				out, err := c.CombinedOutput()
				require.Error(t, err)
				found := short.FindStringSubmatch(string(out))
				require.NotNil(t, found, "%s", out)
				return found[1:]
			}
			told := test("BRAID_SHORTEN=100", "GOMAXPROCS=1")
			t.Log(told[2])
			require.Contains(t, told[0], m.want)
			require.LessOrEqual(t, strings.Count(told[1], "\n"), 250)
			require.Equal(t, told, test(told[2], "GOMAXPROCS=8"))
		})
	}
}

// The picture in simulation/README.md is the diagram of this failure.
func TestThePicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	c := exec.Command(os.Args[0], "-test.run=^TestMistake$")
	c.Env = append(os.Environ(), "BRAID_MISTAKE=0", "BRAID_SEED=275-nemesis3..6,8..10-0.31049", "BRAID_DIAGRAM="+file)
	out, err := c.CombinedOutput()
	require.Error(t, err)
	drawn, err := os.ReadFile(file)
	require.NoError(t, err, "%s", out)
	picture, err := os.ReadFile("../../docs/simulation.svg")
	require.NoError(t, err)
	require.Equal(t, string(picture), string(drawn), "BRAID_DIAGRAM=docs/simulation.svg draws it again")
}
