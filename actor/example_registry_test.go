package actor_test

import (
	"context"
	"fmt"
	"github.com/braidgo/braid/suspend"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A registry finds actors by name, here the rooms of a chat. It starts a room when it is first requested, and forgets a room that
// has ended. The rooms are its children: a Stop of the registry stops them, and waits for them.
func Example_registry() {
	type room = actor.Ref[string]
	type Find struct {
		name string
		actor.Request[room]
	}
	type ended struct{ name string }

	talk := func(name string) func(context.Context, *actor.Self[string]) error {
		return func(_ context.Context, self *actor.Self[string]) error {
			return actor.Loop(func() error {
				return self.React(func(line string) error {
					fmt.Println(name+":", line)
					if line == "bye" {
						return actor.ErrStopped
					}
					return nil
				})
			})
		}
	}

	registry := func(ctx context.Context, self *actor.Self[any]) error {
		rooms := map[string]room{}
		return actor.Loop(func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case *Find:
					ref, ok := rooms[m.name]
					if !ok {
						ref = actor.Spawn(ctx, suspend.Here(), talk(m.name), actor.Options[string]{})
						rooms[m.name] = ref
						self.Watch(ref, func(error) any { return ended{m.name} })
					}
					m.Reply(ref)
				case ended:
					delete(rooms, m.name)
					fmt.Println(m.name, "has ended,", len(rooms), "left")
				}
				return nil
			})
		})
	}

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		names := actor.Spawn(ctx, suspend.Here(), registry, actor.Options[any]{})
		say := func(name, line string) room {
			ref, err := actor.Ask(ctx, names, &Find{name: name})
			if err == nil {
				err = ref.Send(line)
			}
			if err != nil {
				fmt.Println(err)
			}
			return ref
		}
		say("go", "hello")
		say("rust", "hello")
		_ = say("go", "bye").Wait(ctx)
		say("go", "a new room")
		say("rust", "still here") // the registry is stopped before the rooms have read this
		names.Stop()
		return names.Wait(ctx)
	})
	// Output:
	// go: hello
	// rust: hello
	// go: bye
	// go has ended, 1 left
	// go: a new room
	// rust: still here
}
