package workstealing

import (
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/splitmix"
)

// A shard is the part of a large pool's common queue for some of the goroutines outside the pool: their new tasks and callbacks, and
// the tasks that they wake. Each goroutine has its shard, so goroutines that start tasks seldom write to the same words, and the tasks
// of one goroutine stay in order. A worker that finds nothing in the injector and in its queue takes one entry from the shards, in
// rotation. If it has anything else at the beginning of a turn, it moves all shards to the end of the injector.
type shard struct {
	injector
	_ [72]byte // two cache lines, which the processor fetches together
}

const (
	numShards    = 16 // a power of two; each worker that finds no work reads all of them
	picksOfShard = 8  // the calls of takeOutside after which a worker begins with the next shard
)

// place returns the part of the common queue where w adds entries, and the part of p.live where it counts them. If w is nil, the caller is a
// goroutine outside the pool.
func (p *Pool) place(w *worker) (in *injector, part uint) {
	switch {
	case w != nil:
		return &p.injector, w.part
	case p.queues:
		part = uint(uint64(gid.Get())*splitmix.Golden>>32) & uint(len(p.shards)-1)
		return &p.shards[part].injector, part
	}
	return &p.injector, 0
}

// takeOutside takes the oldest entry of the shard from which w has taken the last one, or of the next shard that has any. After several calls it
// begins with the next shard, so that a long shard keeps no other waiting. If isNew is true, it takes nothing else than a new task or a callback.
func (w *worker) takeOutside(isNew bool) (e entry, ok bool) {
	shards := w.pool.shards
	if w.outside++; w.outside%picksOfShard == 0 {
		w.shard++
	}
	for i := range uint(len(shards)) {
		at := (w.shard + i) & uint(len(shards)-1)
		if shards[at].len() == 0 {
			continue
		}
		if e, ok = shards[at].popAfter(&w.pool.injector, isNew); ok || isNew {
			w.shard = at
			return e, ok
		}
	}
	return e, false
}

// gather moves entries of the shards to the end of the injector.
func (p *Pool) gather() {
	for i := range p.shards {
		if s := &p.shards[i]; s.len() > 0 {
			p.injector.moveFrom(&s.injector)
			p.announce() // as in spill
		}
	}
}

// outside returns the number of entries in the shards.
func (p *Pool) outside() (n int64) {
	for i := range p.shards {
		n += p.shards[i].len()
	}
	return n
}

// waiting returns the number of entries in the common queue.
func (p *Pool) waiting() int { return int(p.injector.len() + p.outside()) }

// A common is the common queue of a Pool, for the watch.
type common Pool

// Waiting implements coro.Queue.
func (c *common) Waiting() int { return (*Pool)(c).waiting() }

// Passed implements coro.Queue. An entry that has moved from a shard to the injector has not passed.
func (c *common) Passed() int {
	n := c.injector.passed()
	for i := range c.shards {
		n += c.shards[i].passed()
	}
	return n
}
