package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
)

type (
	line struct{ text string }           // sent to a member, which writes the text to its connection
	say  struct{ from, text string }     // sent to a room
	gone struct{ who actor.Ref[line] }   // sent to a room when a member's connection has ended
	who  struct{ actor.Request[string] } // sent to a room, which replies with the members' names

	join struct { // sent to a room
		name string
		to   actor.Ref[line]
	}
	leave struct{ to actor.Ref[line] } // sent to a room
	enter struct {                     // sent to the lobby, which replies with the room of this name
		actor.Request[actor.Ref[any]]
		room string
	}
)

// rooms returns the body of the lobby. The lobby spawns a room when the first enter message with the room's name arrives. The rooms end
// with the lobby.
func rooms(on suspend.Spawner) func(context.Context, *actor.Self[*enter]) error {
	return func(ctx context.Context, self *actor.Self[*enter]) error {
		all := map[string]actor.Ref[any]{}
		return actor.Loop(func() error {
			return self.React(func(m *enter) error {
				r, ok := all[m.room]
				if !ok {
					r = actor.Spawn(ctx, on, room, actor.Options[any]{})
					all[m.room] = r
				}
				m.Reply(r)
				return nil
			})
		})
	}
}

// room is the body of a room. It sends each member's text to all members. Between two messages, the room has neither a task nor a
// stack.
func room(_ context.Context, self *actor.Self[any]) error {
	members := map[actor.Ref[line]]string{}
	tell := func(format string, args ...any) {
		for to := range members {
			if to.Send(line{fmt.Sprintf(format, args...)}) == actor.ErrFull {
				to.Kill(fmt.Errorf("%s reads too slowly", members[to]))
			}
		}
	}
	left := func(to actor.Ref[line]) {
		if name, ok := members[to]; ok {
			delete(members, to)
			tell("%s has left", name)
		}
	}
	return actor.Loop(func() error {
		return self.React(func(m any) error {
			switch m := m.(type) {
			case join:
				members[m.to] = m.name
				self.Watch(m.to, func(error) any { return gone{m.to} })
				tell("%s has come", m.name)
			case say:
				tell("%s: %s", m.from, m.text)
			case leave:
				left(m.to)
			case gone:
				left(m.who)
			case *who:
				names := slices.Sorted(func(yield func(string) bool) {
					for _, name := range members {
						if !yield(name) {
							return
						}
					}
				})
				m.Reply(strings.Join(names, ", "))
			}
			return nil
		})
	})
}
