// Package actor implements actors that can receive and react, after Haller and Odersky ("Actors that unify threads and events", 2007),
// on any scheduler.
//
// An actor is a mailbox, an address, and code that handles one message at a time. An actor waits for a message in one of two ways. If
// it receives, its task suspends and keeps its stack. If it reacts, it returns a function, and has neither a task nor a stack while it
// waits. One actor may do both, in any order. A reaction runs in a task, so it may receive, lock, ask and sleep.
//
//	func buffer(ctx context.Context, self *actor.Self[Msg]) error {
//		var buf []int
//		return actor.Loop(func() error {
//			return self.React(func(m Msg) error {
//				switch m := m.(type) {
//				case Put:
//					if len(buf) == max {
//						return actor.Skip // for later
//					}
//					buf = append(buf, m.V)
//				case *Get: // type Get struct{ actor.Request[int] }
//					if len(buf) == 0 {
//						return actor.Skip
//					}
//					m.Reply(buf[0])
//					buf = buf[1:]
//				}
//				return nil
//			})
//		})
//	}
//
//	ref := actor.Spawn(ctx, pool, buffer, actor.Options[Msg]{})
//	v, err := actor.Ask(ctx, ref, &Get{})
//
// # Messages
//
// Send never waits. An accepted message is either received or made a dead letter (Options.Dead), and only once, however the actor ends.
// Handle and React call a function with one message after another until the function returns anything but Skip. A skipped message keeps
// its place. Receive returns the first message.
//
// A reply goes to its Ask and never into a mailbox. While an actor waits for anything but a message, such as a reply or a lock, its
// mail waits, so actors are not reentrant. An actor that must handle messages during its own Ask calls AskLater, and then waits for the
// future or a RecvOp, with Select or Await.
//
// # Ends
//
// Stop closes the mailbox and lets the actor finish its mail. A Kill, or the end of the context that was passed to Spawn, ends the
// actor at its next wait. Watch reports the end of another actor, Link propagates failures, and Catch and Restart recover from
// failures.
//
// An actor that is spawned with another actor's context, or with a context derived from it, is that actor's child. If this context
// never ends, as after context.WithoutCancel, the new actor has no parent. An actor that is stopped, or returns ErrStopped, stops its
// children when it is done. An actor that ends in any other way kills its children. It has ended, for Wait, Watch and Link, when all its
// descendants have. Only a Kill ends an actor at once, while its children may still be ending. If the actor's code has ended before, a call
// of Kill does so, but not the end of a context, nor a Link: otherwise a parent with a Link to its children would not wait for them. A child
// that waits for the end of its parent gets an error at once.
//
// A scheduler with a method Hold() (release func(), err error) counts an actor as a task until the actor has ended, so that the
// scheduler's Run or Close waits for actors that react. A scheduler without Hold may refuse an actor's next task after the scheduler
// was closed. The actor then ends, and its mail becomes dead letters.
//
// # Alternatives
//
// A goroutine that ranges over a channel is simpler for one server with one type of message. Use package chanx, or a channel, to share
// work among equal workers, and package stm for state that several tasks change together.
package actor
