package actor_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
)

// A message between two, to and fro.
func BenchmarkPingPong(b *testing.B) {
	for name, wait := range map[string]func(self *actor.Self[int], f func(int) error) error{
		"react": func(self *actor.Self[int], f func(int) error) error {
			next := self.React(f)
			return actor.Loop(func() error { return next })
		},
		"receive": func(self *actor.Self[int], f func(int) error) error {
			for {
				m, err := self.Receive(bg)
				if err == nil {
					err = f(m)
				}
				if err != nil {
					return err
				}
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			onFIFO(b, func() {
				var x, y actor.Ref[int]
				player := func(to *actor.Ref[int]) func(context.Context, *actor.Self[int]) error {
					return func(_ context.Context, self *actor.Self[int]) error {
						return wait(self, func(left int) error {
							_ = to.Send(left - 1)
							if left <= 0 {
								return actor.ErrStopped
							}
							return nil
						})
					}
				}
				x, y = actor.Spawn(bg, suspend.Here(), player(&y)), actor.Spawn(bg, suspend.Here(), player(&x))
				_ = x.Send(b.N)
				_, _ = x.Wait(bg), y.Wait(bg)
			})
		})
	}
	b.Run("channels", func(b *testing.B) {
		x, y, done := make(chan int, 1), make(chan int, 1), make(chan int, 2)
		player := func(in, out chan int) {
			for left := range in {
				out <- left - 1
				if left <= 0 {
					break
				}
			}
			done <- 1
		}
		go player(x, y)
		go player(y, x)
		x <- b.N
		<-done
		<-done
	})
}

// One message is looked at and skipped.
func BenchmarkSkip(b *testing.B) {
	in := actor.Open[int](bg)
	const skipped = 100_000
	for range skipped {
		_ = in.Ref().Send(0)
	}
	b.ResetTimer()
	for i := 0; i < b.N; i += skipped {
		_ = in.Ref().Send(1)
		_ = in.Handle(bg, func(m int) error {
			if m == 0 {
				return actor.Skip
			}
			return nil
		})
	}
}

// A question and its answer.
func BenchmarkAsk(b *testing.B) {
	b.Run("ask", func(b *testing.B) {
		b.ReportAllocs()
		onFIFO(b, func() {
			r := actor.Spawn(bg, suspend.Here(), func(_ context.Context, self *actor.Self[*get]) error {
				next := self.React(func(m *get) error { m.Reply(1); return nil })
				return actor.Loop(func() error { return next })
			})
			for range b.N {
				_, _ = actor.Ask(bg, r, &get{})
			}
			r.Stop()
		})
	})
	b.Run("channels", func(b *testing.B) {
		in := make(chan chan int)
		go func() {
			for reply := range in {
				reply <- 1
			}
		}()
		for range b.N {
			reply := make(chan int, 1)
			in <- reply
			<-reply
		}
		close(in)
	})
}

// Start, one message, end.
func BenchmarkSpawn(b *testing.B) {
	b.Run("actor", func(b *testing.B) {
		b.ReportAllocs()
		onFIFO(b, func() {
			for range b.N {
				r := actor.Spawn(bg, suspend.Here(), func(_ context.Context, self *actor.Self[int]) error {
					return self.React(func(int) error { return nil })
				})
				_ = r.Send(1)
				_ = r.Wait(bg)
			}
		})
	})
	b.Run("goroutine", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			in, done := make(chan int, 1), make(chan struct{})
			go func() { <-in; close(done) }()
			in <- 1
			<-done
		}
	})
}

// One sender, one receiver, which is behind.
func BenchmarkFlood(b *testing.B) {
	b.Run("actor", func(b *testing.B) {
		b.ReportAllocs()
		onFIFO(b, func() {
			n := 0
			r := actor.Spawn(bg, suspend.Here(), func(_ context.Context, self *actor.Self[any]) error {
				next := self.React(func(any) error { n++; return nil })
				return actor.Loop(func() error { return next })
			})
			var m any = &get{}
			for i := range b.N {
				_ = r.Send(m)
				if i%1000 == 0 {
					suspend.Yield()
				}
			}
			r.Stop()
			_ = r.Wait(bg)
		})
	})
	b.Run("channel", func(b *testing.B) {
		c, done := make(chan any, 1024), make(chan int)
		go func() {
			for range c {
			}
			close(done)
		}()
		var m any = &get{}
		for range b.N {
			c <- m
		}
		close(c)
		<-done
	})
}

func onFIFO(b *testing.B, f func()) {
	_ = fifo.Run(bg, func(context.Context) error { b.ResetTimer(); f(); return nil })
}
