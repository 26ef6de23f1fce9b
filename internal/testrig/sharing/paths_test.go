//go:build explore

package sharing

import (
	"context"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

// A path is an operation that is done many times in each run.
type path struct {
	name    string
	atMost  float64 // the number of writes to shared words in an operation
	workers int     // how many workers a run needs

	// make is called once, and its result is called once for each run. The result returns functions for the tasks of the workers: the
	// functions of the setup are not counted. The functions of the path do the operation as many times as the constant times says.
	make func(p *workstealing.Pool) func(run int) (setup, path []func())
}

var paths = []path{
	{"a task wakes a task of its worker, and waits for it", 0, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return func(int) (setup, path []func()) {
			var to, from mvar.MVar[int]
			send := func(v int) { must(to.Put(bg, v)); _, err := from.Take(bg); must(err) }
			round := func() { send(1) }
			return one(func() {
					must(p.Go(func() {
						for v := 1; v > 0; {
							v, _ = to.Take(bg)
							must(from.Put(bg, v))
						}
					}))
					repeat(10, round)
				}), one(func() {
					repeat(times, round)
					send(0)
					suspend.Yield() // the other task ends in this run
				})
		}
	}},
	{"Go from a task", 0, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return func(int) (setup, path []func()) {
			start := func(n int) {
				ran := 0
				for range n / 10 {
					repeat(10, func() { must(p.Go(func() { ran++ })) })
					suspend.Yield()
				}
				for ran < n {
					suspend.Yield()
				}
			}
			return one(func() { start(10) }), one(func() { start(times) })
		}
	}},
	{"Yield", 0, 1, func(*workstealing.Pool) func(int) (setup, path []func()) {
		return func(int) (setup, path []func()) {
			return one(suspend.Yield), one(func() { repeat(times, suspend.Yield) })
		}
	}},
	{"Send between actors of one worker, which react", 0, 1, sends(func(_ context.Context, self *actor.Self[int], f func(int) error) error {
		next := self.React(f)
		return actor.Loop(func() error { return next })
	})},
	{"Send between actors of one worker, which receive", 0, 1, sends(func(ctx context.Context, self *actor.Self[int], f func(int) error) error {
		for {
			m, err := self.Receive(ctx)
			if err == nil {
				err = f(m)
			}
			if err != nil {
				return err
			}
		}
	})},
	{"Join", 0, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		nothing := func(context.Context) (int, error) { return 0, nil }
		return func(int) (setup, path []func()) {
			join := func() { _, _, err := workstealing.Join(bg, p, nothing, nothing); must(err) }
			return one(join), one(func() { repeat(times, join) })
		}
	}},
	{"an uncontended lock", 0, 1, func(*workstealing.Pool) func(int) (setup, path []func()) {
		return func(int) (setup, path []func()) {
			var m mutex.Mutex
			return one(func() {}), one(func() { repeat(times, func() { m.Lock(); m.Unlock() }) })
		}
	}},
	{"a Get of fetch", .3, 1, func(*workstealing.Pool) func(int) (setup, path []func()) {
		src := fetch.BySlice("same", func(_ context.Context, keys []int) ([]int, error) { return keys, nil }, fetch.SourceOptions{})
		return func(int) (setup, path []func()) {
			all := func(n int) {
				must(fetch.Run(bg, func(ctx context.Context) error {
					_, err := fetch.Map(ctx, make([]int, 10), func(ctx context.Context, _ int) (last int, err error) {
						for key := 0; key < n/10 && err == nil; key++ {
							last, err = src.Get(ctx, key)
						}
						return last, err
					})
					return err
				}, fetch.Options{}))
			}
			return one(func() { all(10) }), one(func() { all(times) })
		}
	}},
	{"a Do of replicas with a key", 0, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		r := stage.Replicate(runs, func(run int) uint64 { return uint64(run) }, func(int) *stage.Stage[int, int] {
			return stage.New("s", func(_ context.Context, run int) (int, error) { return run, nil }, stage.Options{On: p})
		})
		return func(run int) (setup, path []func()) {
			do := func() { _, err := r.Do(bg, run); must(err) }
			return one(do), one(func() { repeat(times, do) })
		}
	}},
	{"a Do of replicas without a key", 6, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		r := stage.Replicate(runs, nil, func(int) *stage.Stage[int, int] {
			return stage.New("s", func(_ context.Context, run int) (int, error) { return run, nil }, stage.Options{On: p})
		})
		return func(run int) (setup, path []func()) {
			do := func() { _, err := r.Do(bg, run); must(err) }
			return one(do), one(func() { repeat(times, do) })
		}
	}},
	{"a commit of Vars that nobody else uses", 3, 1, func(*workstealing.Pool) func(int) (setup, path []func()) {
		return func(int) (setup, path []func()) {
			a, b := stm.NewVar(0), stm.NewVar(0)
			commit := func() {
				must(stm.Atomically(bg, func(tx *stm.Tx) error {
					a.Set(tx, a.Get(tx)+1)
					b.Set(tx, b.Get(tx)-1)
					return nil
				}))
			}
			return one(commit), one(func() { repeat(times, commit) })
		}
	}},
	{"Go from outside", 1, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return fromOutside(func(ran func()) { must(p.Go(ran)) })
	}},
	{"Go and a wake-up from outside", 12, 1, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return fromOutside(func(ran func()) {
			var woken promise.Promise[int]
			waits := make(chan int)
			must(p.Go(func() {
				close(waits)
				_, err := woken.Await(bg)
				must(err)
				ran()
			}))
			<-waits
			must2(woken.Fill(0))
		})
	}},
	{"a task that another worker steals", 2, 2, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return besideAFreeWorker(func() {
			ran := make(chan int)
			must(p.Go(func() { ran <- 0 }))
			<-ran
		})
	}},
	{"a task that another worker steals, and again after its wake-up", 4, 2, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return besideAFreeWorker(func() {
			var woken promise.Promise[int]
			waits, ran := make(chan int), make(chan int)
			must(p.Go(func() {
				close(waits)
				_, err := woken.Await(bg)
				must(err)
				ran <- 0
			}))
			<-waits
			must2(woken.Fill(0))
			<-ran
		})
	}},
	{"a fork that another worker steals", 2, 2, func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return besideAFreeWorker(func() {
			ran := make(chan int)
			_, _, err := workstealing.Join(bg, p, func(context.Context) (int, error) { return <-ran, nil },
				func(context.Context) (int, error) { ran <- 0; return 0, nil })
			must(err)
		})
	}},
}

func one(f func()) []func() { return []func(){f} }

// fromOutside does an operation on goroutines outside the pool, ten times on each. The operation makes a task call ran.
func fromOutside(op func(ran func())) func(int) (setup, path []func()) {
	return func(int) (setup, path []func()) {
		start := func(n int) {
			var ended promise.Promise[int]
			left := n
			ran := func() {
				if left--; left == 0 {
					must2(ended.Fill(0))
				}
			}
			some := make(chan int, 100) // fewer than the coroutines that a worker keeps
			go repeat(n/10, func() {
				some <- 0
				go func() { repeat(10, func() { op(ran) }); <-some }()
			})
			_, err := ended.Await(bg)
			must(err)
		}
		return one(func() { start(3000) }), one(func() { start(times) })
	}
}

// besideAFreeWorker does an operation in a task of the first worker. The task of the second worker waits meanwhile.
func besideAFreeWorker(op func()) func(int) (setup, path []func()) {
	return func(int) (setup, path []func()) {
		both := func(n int) []func() {
			var ended promise.Promise[int]
			return []func(){
				func() {
					repeat(64, suspend.Yield) // short steps, after which the worker's queue has room
					repeat(n, op)
					must2(ended.Fill(0))
				},
				func() { _, err := ended.Await(bg); must(err) },
			}
		}
		return both(10), both(times)
	}
}

// sends returns a path in which two actors send a message back and forth.
func sends(wait func(ctx context.Context, self *actor.Self[int], f func(int) error) error) func(*workstealing.Pool) func(int) (setup, path []func()) {
	return func(p *workstealing.Pool) func(int) (setup, path []func()) {
		return func(int) (setup, path []func()) {
			var refs [2]actor.Ref[int]
			var warm promise.Promise[int]
			body := func(to *actor.Ref[int]) func(context.Context, *actor.Self[int]) error {
				return func(ctx context.Context, self *actor.Self[int]) error {
					return wait(ctx, self, func(left int) error {
						switch {
						case left < 0:
							warm.Fill(0)
							return nil
						case left == 0:
							_ = to.Send(0)
							return actor.ErrStopped
						}
						return to.Send(left - 1)
					})
				}
			}
			return one(func() {
					refs[0] = actor.Spawn(bg, p, body(&refs[1]), actor.Options[int]{})
					refs[1] = actor.Spawn(bg, p, body(&refs[0]), actor.Options[int]{})
					must(refs[0].Send(-1))
					_, err := warm.Await(bg)
					must(err)
				}), one(func() {
					must(refs[0].Send(times))
					must(refs[0].Wait(bg))
					must(refs[1].Wait(bg))
				})
		}
	}
}

func repeat(n int, f func()) {
	for range n {
		f()
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must2(ok bool) {
	if !ok {
		panic("filled twice")
	}
}
