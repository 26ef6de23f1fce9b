// Package actor provides actors that receive and react, after Haller and Odersky ("Actors that unify threads and events",
// 2007), on any scheduler.
//
// An actor is a mailbox, an address, and code that does one thing after another. When it waits for a message, it does so in one of two
// ways. It receives: its task suspends, and its stack is kept. Or it reacts: it returns a function, and while it waits there is
// no task and no stack. One actor may do both, in any order, and a reaction runs as a task: it may receive, lock, ask and sleep.
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
//	ref := actor.Spawn(ctx, pool, buffer)
//	v, err := actor.Ask(ctx, ref, &Get{})
//
// # Messages
//
// Send never waits. A message that is accepted is received once, or becomes a dead letter once (Options.Dead), whatever stops the
// actor. Handle and React call a function with each message, from the first on, until one is not skipped; a message that is skipped
// keeps its place. Receive returns the first message, for a switch in the caller.
//
// A reply goes to its Ask and never into a mailbox. While an actor waits in an Ask, a lock or anything but a receive, its mail waits:
// an actor is never entered twice. An actor that must answer during an Ask of its own waits for both,
// with Select or Await of a RecvOp and of the future of AskLater.
//
// # Ends
//
// Stop closes the mailbox and lets the actor finish its mail. Kill, or the end of the context that it was spawned with, ends it
// where it waits next. Watch reports an end, Link passes failures on, Catch and Restart go on after them.
//
// Actors that are spawned with the context of an actor, or with one derived from it, are its children, unless the context never ends:
// context.WithoutCancel detaches. An actor that is stopped, or
// returns ErrStopped, stops its children when it is done, and ends when they have ended. Any other end kills them. So a child
// cannot wait for the end of its parent: it gets an error at once.
//
// A scheduler that offers Hold() (release func(), err error) counts an actor as a task until it has ended, so that its Run or Close
// waits for actors that react. Another one may refuse the next task of an actor when it has closed; the actor has ended then, and
// its mail becomes dead letters.
//
// # Alternatives
//
// A goroutine that ranges over a channel is simpler for one server with one type of message. Use package chanx, or a channel, to share
// work among equal workers, and package stm for state that several tasks change together.
package actor
