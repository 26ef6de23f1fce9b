package suspend_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
	"pgregory.net/rapid"
)

// The queue is compared with a slice. Its waiters are tasks of fifo, and its operations are Push, PushFront, Resume, Remove and
// cancel.
func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := fifo.New(fifo.Options{})
		err := s.Run(bg, func(context.Context) error {
			var g suspend.Guard
			var q suspend.Queue[int, int]
			type waiter struct {
				id     int
				cancel context.CancelCauseFunc
				r      suspend.Resumer[int]
			}
			var model []*waiter
			got := map[int]int{} // what the Suspend of each id returned; -1 if it was cancelled
			n, ended := 0, 0
			push := func(front bool) {
				n++
				w := &waiter{id: n}
				var ctx context.Context
				ctx, w.cancel = cancel.New(bg)
				_ = s.Go(func() {
					v, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
						g.Lock()
						defer g.Unlock()
						if front {
							q.PushFront(r, w.id)
						} else {
							q.Push(r, w.id)
						}
						w.r = r
						return 0, false
					})
					if err != nil {
						g.Lock()
						q.Remove(w.r)
						g.Unlock()
						v = -1
					}
					got[w.id] = v
					ended++
				})
				suspend.Yield()
				if front {
					model = append([]*waiter{w}, model...)
				} else {
					model = append(model, w)
				}
			}
			rt.Repeat(map[string]func(*rapid.T){
				"push":  func(*rapid.T) { push(false) },
				"front": func(*rapid.T) { push(true) },
				"resume": func(*rapid.T) {
					g.Lock()
					id, ok := q.Resume(n, nil)
					g.Unlock()
					if ok != (len(model) > 0) {
						rt.Fatalf("Resume says %v with %d waiters", ok, len(model))
					}
					if !ok {
						return
					}
					if id != model[0].id {
						rt.Fatalf("resumed %d, first is %d", id, model[0].id)
					}
					suspend.Yield()
					if got[id] != n {
						rt.Fatalf("%d got %d, want %d", id, got[id], n)
					}
					model = model[1:]
				},
				"cancel": func(rt *rapid.T) {
					if len(model) == 0 {
						return
					}
					i := rapid.IntRange(0, len(model)-1).Draw(rt, "which")
					w := model[i]
					w.cancel(nil)
					if rapid.Bool().Draw(rt, "met by a Resume") && i == 0 {
						g.Lock()
						id, ok := q.Resume(n, nil)
						g.Unlock()
						if ok && (len(model) < 2 || id != model[1].id) {
							rt.Fatalf("resumed %d behind a cancelled one", id)
						}
						if ok {
							model = append(model[:1:1], model[2:]...)
						}
					}
					model = append(model[:i:i], model[i+1:]...)
					suspend.Yield()
					if got[w.id] != -1 {
						rt.Fatalf("%d got %d, want a cancellation", w.id, got[w.id])
					}
				},
				"": func(rt *rapid.T) {
					if q.Len() != len(model) {
						rt.Fatalf("%d waiters, want %d", q.Len(), len(model))
					}
					if head := q.Head(); (head == nil) != (len(model) == 0) || head != nil && *head != model[0].id {
						rt.Fatalf("wrong head")
					}
				},
			})
			g.Lock()
			left := q.ResumeAll(0, nil)
			g.Unlock()
			if left != len(model) {
				rt.Fatalf("ResumeAll = %d, want %d", left, len(model))
			}
			for ended < n {
				suspend.Yield()
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}
