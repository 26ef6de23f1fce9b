package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// converse serves a connection. The calling task reads lines from the connection. An actor, which is the member of a room, writes lines
// to the connection. The actor ends the task by closing the connection, and the task ends the actor with Stop.
func converse(ctx context.Context, c net.Conn, lobby actor.Ref[*enter]) error {
	const behind = 100 // the maximum number of lines that wait for a slow reader
	me := actor.Spawn(ctx, suspend.Here(), func(ctx context.Context, self *actor.Self[line]) error {
		out := eventloop.WithContext(ctx, c) // a Kill then ends a blocked Write
		self.OnEnd(func() { _ = c.Close() })
		return actor.Loop(func() error {
			return self.React(func(l line) error {
				_, err := io.WriteString(out, l.text+"\n")
				return err
			})
		})
	}, actor.Options[line]{Cap: behind})
	err := read(ctx, c, me, lobby)
	me.Stop()
	if ended := me.Wait(context.WithoutCancel(ctx)); err == nil || errors.Is(err, net.ErrClosed) {
		err = ended
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func read(ctx context.Context, c net.Conn, me actor.Ref[line], lobby actor.Ref[*enter]) error {
	lines := bufio.NewScanner(c)
	if !lines.Scan() {
		return lines.Err()
	}
	name := lines.Text()
	var in actor.Ref[any] // the current room; the zero Ref at first
	goTo := func(room string) (err error) {
		_ = in.Send(leave{me})
		if in, err = actor.Ask(ctx, lobby, &enter{room: room}); err == nil {
			err = in.Send(join{name, me})
		}
		return err
	}
	err := goTo("lobby")
	for err == nil && lines.Scan() {
		switch text := lines.Text(); {
		case strings.HasPrefix(text, "/join "):
			err = goTo(strings.TrimPrefix(text, "/join "))
		case text == "/who":
			var names string
			if names, err = actor.Ask(ctx, in, &who{}); err == nil {
				err = me.Send(line{names})
			}
		default:
			err = in.Send(say{name, text})
		}
	}
	if err == nil {
		err = lines.Err()
	}
	return err
}
