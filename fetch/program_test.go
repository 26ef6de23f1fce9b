package fetch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// Random programs are evaluated in three ways: by fetch, sequentially, and by a model that knows the round in which each key
// arrives.

// A node is a program: a function of a number that fetches keys.
type node struct {
	kind     kind
	key      int // the key of a get; the input is added to it
	fixed    bool
	children []*node
	n        int
}

type kind int

const (
	get  kind = iota // gets the value of a key, which depends on the input unless it is fixed
	then             // in sequence, each with the result of the one before
	maps             // in parallel, with the sum as the result
	two              // also in parallel
	all              // gets several keys
	memo             // gets a memo: one of the shared programs
	kinds
)

const (
	keys     = 40
	sources  = 3
	memos    = 4
	failing  = 7 // keys with this remainder modulo ten fail, in programs that may fail
	missing  = 8
	panicked = 9 // the same, for a source that is called for each key
)

// A program is a node, with the memos that it may use. Each memo uses only those before it.
type program struct {
	main   *node
	memos  [memos]*node
	errors bool
	seed   uint64
}

func newProgram(seed uint64, errors bool) *program {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &program{errors: errors, seed: seed}
	for i := range p.memos {
		p.memos[i] = randomNode(r, 2, i)
	}
	p.main = randomNode(r, 1+r.IntN(5), memos)
	return p
}

func randomNode(r *rand.Rand, depth, memos int) *node {
	n := &node{key: r.IntN(keys), fixed: r.IntN(3) == 0}
	if depth == 0 {
		return n
	}
	switch n.kind = kind(r.IntN(int(kinds))); n.kind {
	case memo:
		if memos == 0 {
			n.kind = get
		} else {
			n.n = r.IntN(memos)
		}
	case all:
		n.n = r.IntN(5)
	case then, maps, two:
		count := 1 + r.IntN(4)
		if n.kind == two {
			count = 2
		}
		for range count {
			n.children = append(n.children, randomNode(r, depth-1, memos))
		}
	}
	return n
}

func (n *node) keyOf(x int) int {
	if n.fixed {
		return n.key
	}
	return (n.key + x) % keys
}

// The source of a key depends on the key, and so does its value.
func valueOf(key int) int { return key*key%97 + 1 }

type thrown struct{ key int }

var errSource = errors.New("oops")

// answer returns the value of a key, or panics, as the program's source does.
func (p *program) answer(key int) (int, error) {
	if p.errors {
		switch key % 10 {
		case failing:
			return 0, &fetch.Error{Source: name(key), Key: key, Err: errSource}
		case missing:
			return 0, &fetch.Error{Source: name(key), Key: key, Err: fetch.ErrNotFound}
		case panicked:
			if key%sources == 1 {
				panic(thrown{key})
			}
		}
	}
	return valueOf(key), nil
}

func name(key int) string { return fmt.Sprint("s", key%sources) }

// outcome returns the result of an evaluation as text. A panic counts as an error.
func outcome(f func() (int, error)) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("panic: %v", v)
		}
	}()
	v, err := f()
	return fmt.Sprint(v, " ", err)
}

// sequential evaluates n(x) in sequence.
func (p *program) sequential(n *node, x int) (int, error) {
	switch n.kind {
	case get:
		return p.answer(n.keyOf(x))
	case memo:
		return p.sequential(p.memos[n.n], n.keyOf(x))
	case all:
		sum := 0
		for i := range n.n {
			v, err := p.answer((n.keyOf(x) + 3*i) % keys)
			if err != nil {
				return 0, err
			}
			sum += v
		}
		return sum, nil
	}
	sum := 0
	for i, c := range n.children {
		in := x + i
		if n.kind == then && i > 0 {
			in = sum
		}
		v, err := p.sequential(c, in)
		if err != nil {
			return 0, err
		}
		if n.kind == then {
			sum = v
		} else {
			sum += v
		}
	}
	return sum, nil
}

// depth returns the number of rounds that the program needs if it does not fail. It is computed as a least fixed point: the
// rounds in which each key and each memo arrives.
func (p *program) depth() int {
	keyAt, memoAt := map[int]int{}, map[[2]int]int{} // the round in which each arrives
	for {
		changed := false
		var eval func(n *node, x, at int) (v, end int)
		key := func(k, at int) (int, int) {
			if there, ok := keyAt[k]; !ok || at+1 < there {
				keyAt[k], changed = at+1, true
			}
			return valueOf(k), max(at, keyAt[k])
		}
		eval = func(n *node, x, at int) (v, end int) {
			switch n.kind {
			case get:
				return key(n.keyOf(x), at)
			case memo:
				id := [2]int{n.n, n.keyOf(x)}
				v, end := eval(p.memos[n.n], n.keyOf(x), at)
				if there, ok := memoAt[id]; !ok || end < there {
					memoAt[id], changed = end, true
				}
				return v, max(at, memoAt[id])
			case all:
				end = at
				for i := range n.n {
					kv, t := key((n.keyOf(x)+3*i)%keys, at)
					v, end = v+kv, max(end, t)
				}
				return v, end
			case then:
				v, end = x, at
				for _, c := range n.children {
					v, end = eval(c, v, end)
				}
				return v, end
			}
			end = at
			for i, c := range n.children {
				cv, t := eval(c, x+i, at)
				v, end = v+cv, max(end, t)
			}
			return v, end
		}
		eval(p.main, 0, 0)
		if !changed {
			break
		}
	}
	rounds := 0
	for _, at := range keyAt {
		rounds = max(rounds, at)
	}
	return rounds
}

// A world holds the sources of one program, and a log of their batches.
type world struct {
	p       *program
	sources [sources]*fetch.Source[int, int]
	memos   [memos]*fetch.Memo[int, int]

	mu    sync.Mutex
	log   []string
	sent  map[int]context.Context // the context of the batch that had the key
	twice string                  // a key that was sent twice, although its first batch was not cancelled
	calls int
	hook  func(call int, source string, ctx context.Context) // is called in each call of a source
}

func newWorld(p *program) *world {
	w := &world{p: p, sent: map[int]context.Context{}}
	load := func(source string) func(ctx context.Context, b *fetch.Batch[int, int]) error {
		return func(ctx context.Context, b *fetch.Batch[int, int]) error {
			w.note(ctx, source, b.Keys())
			for _, k := range b.Keys() {
				if v, err := p.answer(k); err == nil {
					b.Set(k, v)
				} else if k%10 == failing {
					b.Fail(k, errSource)
				}
			}
			return nil
		}
	}
	w.sources[0] = fetch.New("s0", load("s0"), fetch.SourceOptions{})
	w.sources[1] = fetch.ByKey("s1", 2, func(ctx context.Context, k int) (int, error) {
		w.note(ctx, "s1", []int{k})
		v, err := p.answer(k)
		return v, errors.Unwrap(err)
	}, fetch.SourceOptions{MaxBatch: 3, MaxOpen: 2})
	w.sources[2] = fetch.New("s2", load("s2"), fetch.SourceOptions{Inline: true})
	for i := range w.memos {
		w.memos[i] = fetch.NewMemo(fmt.Sprint("m", i), func(ctx context.Context, x int) (int, error) {
			return w.eval(ctx, p.memos[i], x)
		})
	}
	return w
}

func (w *world) note(ctx context.Context, source string, ks []int) {
	w.mu.Lock()
	w.log = append(w.log, fmt.Sprint(source, ks))
	for _, k := range ks {
		if before := w.sent[k]; before != nil && before.Err() == nil {
			w.twice = fmt.Sprint(k)
		}
		w.sent[k] = ctx
	}
	call, hook := w.calls, w.hook
	w.calls++
	w.mu.Unlock()
	if hook != nil {
		hook(call, source, ctx)
	}
}

// eval evaluates n(x) with fetch.
func (w *world) eval(ctx context.Context, n *node, x int) (int, error) {
	switch n.kind {
	case get:
		k := n.keyOf(x)
		return w.sources[k%sources].Get(ctx, k)
	case memo:
		return w.memos[n.n].Get(ctx, n.keyOf(x))
	case then:
		v := x
		for i, c := range n.children {
			var err error
			if v, err = w.eval(ctx, c, v); err != nil {
				return 0, err
			}
			_ = i
		}
		return v, nil
	case two:
		a, b, err := fetch.Two(ctx,
			func(ctx context.Context) (int, error) { return w.eval(ctx, n.children[0], x) },
			func(ctx context.Context) (int, error) { return w.eval(ctx, n.children[1], x+1) })
		return a + b, err
	case all:
		return w.all(ctx, n, x)
	}
	indices := make([]int, len(n.children))
	for i := range indices {
		indices[i] = i
	}
	f := func(ctx context.Context, i int) (int, error) { return w.eval(ctx, n.children[i], x+i) }
	vs, err := fetch.Map(ctx, indices, f)
	return sum(vs), err
}

// all gets several keys, with All if they belong to one source, and with Map otherwise.
func (w *world) all(ctx context.Context, n *node, x int) (int, error) {
	var ks [sources][]int
	for i := range n.n {
		k := (n.keyOf(x) + 3*i) % keys
		ks[k%sources] = append(ks[k%sources], k)
	}
	if n.n > 0 && len(ks[n.keyOf(x)%sources]) == n.n {
		vs, err := w.sources[n.keyOf(x)%sources].All(ctx, ks[n.keyOf(x)%sources])
		return sum(vs), err
	}
	var in []int
	for i := range n.n {
		in = append(in, (n.keyOf(x)+3*i)%keys)
	}
	vs, err := fetch.Map(ctx, in, func(ctx context.Context, k int) (int, error) { return w.sources[k%sources].Get(ctx, k) })
	return sum(vs), err
}

func sum(vs []int) (s int) {
	for _, v := range vs {
		s += v
	}
	return s
}

// A way is a driver with which a program is run.
type way struct {
	name  string
	exact bool // the number of rounds must equal the depth
	run   func(ctx context.Context, o fetch.Options, body func(ctx context.Context) error) error
}

func ways(pool *workstealing.Pool) []way {
	with := func(eager bool, on suspend.Spawner) func(context.Context, fetch.Options, func(context.Context) error) error {
		return func(ctx context.Context, o fetch.Options, body func(ctx context.Context) error) error {
			o.Eager, o.On = eager, on
			return fetch.Run(ctx, body, o)
		}
	}
	return []way{
		{"ordered", true, with(false, nil)},
		{"ordered, eager", false, with(true, nil)},
		{"counted, goroutines", true, with(false, suspend.Goroutines)},
		{"counted, pool", true, with(false, pool)},
		{"settled", false, func(ctx context.Context, o fetch.Options, body func(ctx context.Context) error) error {
			ctx, s := fetch.Open(ctx, o)
			defer s.Close()
			return body(ctx)
		}},
	}
}

// evaluate runs p in the given way.
func (p *program) evaluate(w *world, way way, o fetch.Options) (result string, stats fetch.Stats, s *fetch.Session) {
	result = outcome(func() (v int, err error) {
		err = way.run(context.Background(), o, func(ctx context.Context) (err error) {
			s = fetch.Of(ctx)
			v, err = w.eval(ctx, p.main, 0)
			return err
		})
		return v, err
	})
	return result, s.Stats(), s
}

// programs returns the seeds of the random programs. BRAID_FETCH_PROGRAMS sets their number.
func programs(t *testing.T, usual int) (from, to uint64) {
	n := uint64(usual)
	if testing.Short() {
		n /= 4
	}
	if s := os.Getenv("BRAID_FETCH_PROGRAMS"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n = v
	}
	if s := os.Getenv("BRAID_FETCH_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v, v + 1
	}
	return 1, n + 1
}

// A program returns the result of its sequential evaluation, needs as many rounds as its depth, and sends no key twice.
func TestRandomPrograms(t *testing.T) {
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	from, to := programs(t, 400)
	deepest, failed := 0, 0
	for seed := from; seed < to; seed++ {
		p := newProgram(seed, seed%2 == 0)
		want := outcome(func() (int, error) { return p.sequential(p.main, 0) })
		exact := !p.errors
		depth := p.depth()
		if strings.HasSuffix(want, "<nil>") {
			deepest = max(deepest, depth)
		} else {
			failed++
		}
		for _, way := range ways(pool) {
			w := newWorld(p)
			got, stats, _ := p.evaluate(w, way, fetch.Options{})
			switch {
			case got != want:
				t.Fatalf("seed %d, %s: %s, sequentially %s", seed, way.name, got, want)
			case exact && way.exact && stats.Rounds != depth:
				t.Fatalf("seed %d, %s: %d rounds, depth %d\n%s", seed, way.name, stats.Rounds, depth, strings.Join(w.log, "\n"))
			case w.twice != "":
				t.Fatalf("seed %d, %s: key %s was sent twice\n%s", seed, way.name, w.twice, strings.Join(w.log, "\n"))
			}
		}
	}
	t.Logf("%d programs, depths to %d, %d of them fail", to-from, deepest, failed)
}

// Two ordered runs of a program send the same batches, in the same order.
func TestOrderedIsDeterministic(t *testing.T) {
	from, to := programs(t, 200)
	for seed := from; seed < to; seed++ {
		p := newProgram(seed, seed%2 == 0)
		var logs [2]string
		for i := range logs {
			w := newWorld(p)
			result, stats, _ := p.evaluate(w, ways(nil)[0], fetch.Options{})
			slices.Sort(w.log) // the batches of one round are called at the same time
			logs[i] = fmt.Sprint(result, stats, w.log)
		}
		if logs[0] != logs[1] {
			t.Fatalf("seed %d:\n%s\n%s", seed, logs[0], logs[1])
		}
	}
}

// No matter what is cancelled, and when, every Get returns, a batch without waiters is cancelled, nothing that was cancelled is
// remembered, and no goroutine remains.
func TestCancelledPrograms(t *testing.T) {
	defer schedtest.NoGoroutines(t)
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	from, to := programs(t, 100)
	hit := 0
	for seed := from; seed < to; seed++ {
		p := newProgram(seed, seed%2 == 0)
		want := outcome(func() (int, error) { return p.sequential(p.main, 0) })
		for at := range 4 {
			for _, way := range ways(pool) {
				w := newWorld(p)
				ctx, s := fetch.Open(context.Background(), fetch.Options{})
				one, stop := context.WithCancel(ctx)
				if seed%3 == 0 {
					var end func(error)
					one, end = cancel.New(ctx)
					stop = func() { end(nil) }
				}
				w.hook = func(call int, source string, ctx context.Context) {
					switch {
					case call == at && source == "s2": // must not wait, because the source is inline
						stop()
					case call == at:
						stop()
						<-ctx.Done()
					}
				}
				got := outcome(func() (v int, err error) {
					err = way.run(one, fetch.Options{}, func(ctx context.Context) (err error) {
						v, err = w.eval(ctx, p.main, 0)
						return err
					})
					return v, err
				})
				if got != want {
					hit++
					if !strings.Contains(got, "canceled") {
						t.Fatalf("seed %d, %s, cancelled in call %d: %s, sequentially %s", seed, way.name, at, got, want)
					}
				}
				w.hook = nil
				got = outcome(func() (v int, err error) {
					err = fetch.Run(ctx, func(ctx context.Context) (err error) {
						v, err = w.eval(ctx, p.main, 0)
						return err
					}, fetch.Options{})
					return v, err
				})
				if got != want {
					t.Fatalf("seed %d, %s, after a cancellation in call %d: %s, sequentially %s", seed, way.name, at, got, want)
				}
				stop()
				s.Close()
			}
		}
	}
	t.Logf("%d programs, %d results of a cancellation", to-from, hit)
}

// A recording that was written as JSON and read again gives the same result without a source.
func TestReplayedPrograms(t *testing.T) {
	from, to := programs(t, 200)
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	for seed := from; seed < to; seed++ {
		p := newProgram(seed, seed%2 == 0)
		w := newWorld(p)
		want, _, s := p.evaluate(w, ways(pool)[seed%5], fetch.Options{})
		r, err := s.Record()
		require.NoError(t, err)
		text, err := json.MarshalIndent(r, "", "\t")
		require.NoError(t, err)
		var again fetch.Recording
		require.NoError(t, json.Unmarshal(text, &again))
		w = newWorld(p)
		got, stats, _ := p.evaluate(w, ways(pool)[0], fetch.Options{Replay: &again})
		if got != want || stats.Batches != 0 || len(w.log) > 0 {
			t.Fatalf("seed %d: replayed %s, recorded %s, %d batches, sources were called %v", seed, got, want, stats.Batches, w.log)
		}
	}
}
