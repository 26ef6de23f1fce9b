//go:build linux || darwin

package eventloop_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
)

// While the process has no free descriptors, no connection is accepted. As soon as there are some, the backlog is served,
// although no event comes. A Close does not wait for the next attempt.
//
// OnAcceptError reports the shortage. Otherwise such a server would look like one without clients.
func TestAcceptWaitsOutAShortage(t *testing.T) {
	told := make(chan error, 100)
	l := open(t, eventloop.Options{OnAcceptError: func(err error, retry time.Duration) {
		if retry <= 0 || retry > time.Second {
			t.Error(retry)
		}
		select {
		case told <- err:
		default:
		}
	}})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	const clients = 5
	for range clients {
		c := must(net.Dial("tcp", ln.Addr().String()))
		defer c.Close()
	}
	restore := noDescriptors(t)
	handled := make(chan struct{}, clients)
	serve := func(ctx context.Context) chan error {
		served := make(chan error, 1)
		go func() {
			served <- ln.Serve(ctx, func(context.Context, net.Conn) { handled <- struct{}{} })
		}()
		suspended(t, l, 1)
		return served
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := serve(ctx)
	cancel()
	within(t, func() {
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	served = serve(context.Background())
	restore()
	within(t, func() {
		for range clients {
			<-handled
		}
	})
	ln.Close()
	within(t, func() { <-served })
	err := <-told
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "accept tcp "+ln.Addr().String()+": ") {
		t.Error(err)
	}
}

// If OnAcceptError panics, Serve returns an error. It must not return nil, nor continue with a reactor that accepts nothing.
func TestAnAcceptErrorHookPanics(t *testing.T) {
	l := open(t, eventloop.Options{
		Loops:         2,
		OnPanic:       func(any, []byte) {},
		OnAcceptError: func(error, time.Duration) { panic("oops") },
	})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	c := must(net.Dial("tcp", ln.Addr().String())) // to one of the reactors
	defer c.Close()
	restore := noDescriptors(t)
	within(t, func() {
		if err := ln.Serve(context.Background(), echo); err == nil || !strings.Contains(err.Error(), "accept tcp ") {
			t.Error(err)
		}
	})
	restore()
	ln.Close()
}

func TestAShortageIsLogged(t *testing.T) {
	var text bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&text)
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	c := must(net.Dial("tcp", ln.Addr().String()))
	defer c.Close()
	restore := noDescriptors(t)
	accepted := make(chan error, 1)
	must(0, l.Go(func() { _, err := ln.Accept(); accepted <- err }))
	suspended(t, l, 1) // until Accept waits for its next attempt
	_, dialed := l.Dial(context.Background(), "tcp", ln.Addr().String())
	_, listened := l.Listen("tcp", "127.0.0.1:0")
	restore()
	ln.Close()
	within(t, func() { <-accepted })
	if s := text.String(); !strings.Contains(s, `eventloop: no connection can be accepted err="accept tcp `+ln.Addr().String()+": ") || !strings.Contains(s, "retry=5ms") {
		t.Errorf("logged: %q", s)
	}
	// An error must name the address, to be of use in a log.
	if err := dialed; err == nil || !strings.Contains(err.Error(), "dial tcp "+ln.Addr().String()+": ") {
		t.Error(err)
	}
	if err := listened; err == nil || !strings.Contains(err.Error(), "listen tcp 127.0.0.1:0: ") {
		t.Error(err)
	}
}

// noDescriptors prevents the process from opening descriptors, until restore is called or the test ends.
func noDescriptors(t *testing.T) (restore func()) {
	var limit syscall.Rlimit
	must(0, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	must(0, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	restore = func() { must(0, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }
	t.Cleanup(restore)
	return restore
}
