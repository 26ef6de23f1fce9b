package natsactor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
)

// live publishes signs of life until the server is closed, its connection is drained or closed, or the actor has ended. In the last case
// it then publishes the actor's end.
func (s *Server) live(a actor.Actor, status <-chan nats.Status) {
	beat := time.NewTicker(s.opts.Beat)
	defer beat.Stop()
	subject := lifeSubject(s.subject)
	for {
		select {
		case <-beat.C:
			_ = s.nc.Publish(subject, []byte(s.id))
			s.loseDropped()
		case <-a.Done():
			end := &nats.Msg{Subject: subject, Header: nats.Header{}}
			if err := a.Wait(context.Background()); err != nil {
				end = errorMsg(subject, err)
			}
			end.Header.Set(endHeader, s.id)
			_ = s.nc.PublishMsg(end) // reaches a Watch whose question will not be answered
			s.unsubscribe()
			_ = s.nc.PublishMsg(end) // reaches a Watch that has missed the first message, but had an answer
			_ = s.nc.Flush()
			return
		case <-status:
			s.unsubscribe()
			return
		case <-s.closing:
			s.unsubscribe()
			return
		}
	}
}

// unsubscribe ends the service. All messages that NATS has sent to this process are put into the mailbox, or refused if there is no room
// when s.ctx ends. Requests that the actor has received are still answered.
func (s *Server) unsubscribe() {
	s.loseDropped()
	_ = s.life.Unsubscribe()
	_ = s.sub.Drain() // fails if the connection is closed
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-s.drained:
			open = false
		case <-tick.C:
			s.loseDropped()
			if n, _, _ := s.sub.Pending(); n <= 0 && s.ctx.Err() != nil && !s.nc.IsConnected() {
				_ = s.sub.Unsubscribe() // nothing comes while the NATS server is away
			}
		}
	}
	s.delivering.Wait()
	s.mu.Lock()
	s.closed = true
	last := len(s.requests) == 0
	s.mu.Unlock()
	if last {
		s.release()
	}
}

// liveOn tells the clients of a closed server which requests it holds, because their questions do not arrive while the connection is
// drained. It returns when all requests are answered.
func (s *Server) liveOn() {
	beat := time.NewTicker(s.opts.Beat)
	defer beat.Stop()
	for ; !s.nc.IsClosed(); <-beat.C {
		held := map[string][]string{}
		s.mu.Lock()
		for key, r := range s.requests {
			inbox := r.reply[:strings.LastIndexByte(r.reply, '.')+1]
			held[inbox] = append(held[inbox], key[strings.LastIndexByte(key, '.')+1:])
		}
		s.mu.Unlock()
		if len(held) == 0 {
			return
		}
		for inbox, tokens := range held {
			_ = s.nc.Publish(inbox+heldToken, []byte(strings.Join(tokens, "\n")))
		}
	}
}

// Shutdown ends the service. NATS then sends new messages to other servers. The messages that it has sent to this process before are put
// into the mailbox. While the mailbox is full, Shutdown waits. When ctx is done, Shutdown returns the cancellation error at once, and the
// messages without room are given up in parallel: they are lost and reported, and their Asks fail. A later Close waits for that. If the
// service has ended, Shutdown returns nil, even if ctx is done. The actor continues to run, and its replies are still sent, so the
// connection must stay open until it has replied.
//
// Shutdown and Close block the calling goroutine; a task should call them in suspend.Blocking.
func (s *Server) Shutdown(ctx context.Context) error {
	s.once.Do(s.beginEnd)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-s.done:
		return nil
	default:
	}
	s.giveUp()
	return context.Cause(ctx)
}

// Close ends the service at once: it is like Shutdown, but does not wait for room in the mailbox. Messages without room are lost and
// reported, and their Asks fail. If messages were lost since the first Shutdown or Close, Close returns an error that wraps
// suspend.ErrClosed, with their number. Each loss is in the error of one Close: if several are called, one of them returns an error, and
// the others return nil. Close waits until the NATS client has unsubscribed, and until OnLost and the codec have returned, so neither may
// call it. A second Close waits in the same way.
func (s *Server) Close() error {
	s.once.Do(s.beginEnd)
	s.giveUp()
	<-s.done
	s.mu.Lock()
	n := s.Lost() - s.told
	s.told += n
	s.mu.Unlock()
	if n > 0 {
		return fmt.Errorf("natsactor: closed with %d messages lost: %w", n, suspend.ErrClosed)
	}
	return nil
}

func (s *Server) beginEnd() {
	s.mu.Lock()
	s.told = s.Lost()
	s.mu.Unlock()
	close(s.closing)
}
